// Runs the keel program as a child process: its exit code, its output, and its behaviour in hostile
// surroundings.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keel::test {

struct ProcessOptions {
  // Variables to set or, without a value, to unset.
  std::map<std::string, std::optional<std::string>> environment = {};
  std::filesystem::path in = {};         // read as standard input; empty: there is none
  std::filesystem::path directory = {};  // to run in; empty: this one
  std::filesystem::path out = {};        // takes standard output instead of the result
  std::filesystem::path err = {};        // the same for standard error
  bool close_out = false;                // starts with standard output closed, as by >&-
  bool close_err = false;                // the same for standard error
  bool unread_out = false;               // standard output goes to a reader that is gone
  bool unread_err = false;               // the same for standard error
  std::int64_t max_file_bytes = 0;       // the largest file, as by ulimit -f; 0: no limit
  std::int64_t max_memory_bytes = 0;     // of address space, as by ulimit -v; 0: no limit
  std::int64_t max_stack_bytes = 0;      // as by ulimit -s; 0: no limit
  std::int64_t max_threads = 0;          // of the user, as by ulimit -u; 0: no limit
  bool ignore_hangup = false;            // starts with SIGHUP ignored, as by nohup
  bool as_nobody = false;                // gives up root, if it is root, so that permissions count
  bool may_leak = false;                 // a library that the program loads leaks memory
};

struct ProcessResult {
  int code = 0;  // exit code, or minus the signal that ended it
  std::string out, err;
};

class Process {
 public:
  // Starts the program with these arguments.
  explicit Process(const std::vector<std::string>& arguments, const ProcessOptions& options = {});
  // Kills and forgets a program that is still there.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void signal(int number) const;
  bool has_ended();
  // Waits until the program has ended or handles the signal, at most a minute.
  void await_handler(int number);
  pid_t id() const { return pid_; }
  // Waits for the end; after two minutes the program is killed.
  ProcessResult wait();

 private:
  [[noreturn]] void become_program(char** arguments, char** environment,
                                   const ProcessOptions& options) const;
  void set_streams(const ProcessOptions& options) const;

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::optional<int> status_;
};

// Starts the program and waits for it.
ProcessResult run_keel(const std::vector<std::string>& arguments,
                       const ProcessOptions& options = {});

}  // namespace keel::test

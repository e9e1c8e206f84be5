// Runs the keel program as a child process: its exit code, what it says, and how it stands a
// hostile surrounding.
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
  bool close_out = false;                // starts with standard output closed, as by >&-
  std::int64_t max_file_bytes = 0;       // a longer file fails like a full disk; 0: no limit
  bool as_nobody = false;                // gives up root, if it is root, so that permissions count
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
  // Waits for the end; after two minutes the program is killed.
  ProcessResult wait();

 private:
  [[noreturn]] void become_program(char** arguments, char** environment,
                                   const ProcessOptions& options) const;

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  std::optional<int> status_;
};

// Starts the program and waits for it.
ProcessResult run_keel(const std::vector<std::string>& arguments,
                       const ProcessOptions& options = {});

}  // namespace keel::test

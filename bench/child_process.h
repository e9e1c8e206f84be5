// A program that is run beside this one, asked through its standard input, and answers with lines
// on its standard output.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace keel::bench {

class ChildProcess {
 public:
  // Starts command[0], looked for in PATH, with the other words as arguments. Its standard error is
  // this program's. Throws Error{kIo} when it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command);
  ~ChildProcess();  // ends it
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Throws Error{kIo} when nobody is there to read.
  void send(std::string_view bytes) const;
  // Waits for the next line and returns it without its end. Throws Error{kIo} when the program ends
  // or closes its output first, Error{kBadInput} for a line of more than a MiB.
  std::string read_line();

 private:
  std::string name_;
  int socket_ = -1;  // both its standard input and its standard output
  pid_t pid_ = -1;
  std::string read_;  // what came behind the last line
};

}  // namespace keel::bench

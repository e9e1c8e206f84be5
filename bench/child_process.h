// A program that runs beside this one. It is asked through its standard input and answers with
// lines on its standard output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/child.h"

namespace keel::bench {

class ChildProcess {
 public:
  // Starts command[0], looked for in PATH, with the other words as arguments, and ends it when this
  // object ends. Its standard error is this program's. Throws Error{kIo} when it cannot be started.
  explicit ChildProcess(const std::vector<std::string>& command);

  // Throws Error{kIo} when the program no longer reads.
  void send(std::string_view bytes) const;
  // Waits for the next line and returns it without its end. Throws Error{kIo} when the program ends
  // or closes its output first, Error{kBadInput} for a line of more than a MiB.
  std::string read_line();

 private:
  // Standard input and output of the program, as the two ends of a pair of sockets.
  struct Ends {
    io::Descriptor ours, its;
  };
  static Ends make_ends(const std::string& name);
  ChildProcess(const std::vector<std::string>& command, Ends ends);

  std::string name_;
  io::Descriptor socket_;
  io::Child child_;
  std::string read_;  // received after the last line
};

}  // namespace keel::bench

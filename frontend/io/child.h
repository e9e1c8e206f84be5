// Another program, run as a process of its own.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace keel::io {

// An open file descriptor, closed with its owner. -1: none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct ChildOptions {
  // Its standard streams; -1: those of this program.
  int in = -1, out = -1, err = -1;
  // Whether it has a process group of its own: a terminal's Ctrl-C then reaches only this program,
  // which may pass it on.
  bool own_group = false;
};

class Child {
 public:
  // Starts command[0], which is looked up in PATH, with the other words as arguments. Throws
  // Error{kIo} when it cannot be started.
  explicit Child(const std::vector<std::string>& command, const ChildOptions& options = {});
  ~Child();  // ends it, if it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Sends a signal, unless ended() has already reported the end.
  void signal(int number) const;
  // Its exit code, or 128 + the signal that ended it; nothing while it runs.
  std::optional<int> ended();

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace keel::io

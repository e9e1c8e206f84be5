// Processes that keep a machine busy, as other programs would, while something is measured.
#pragma once

#include <sys/types.h>

#include <vector>

namespace keel::bench {

// Keeps as many processors busy as it has processes, until it ends. Each goes through 256 KiB again
// and again, reading and writing, so that it takes part of the caches, too.
class Load {
 public:
  // 0 processes: one for each processor that this program may use. Throws Error{kIo} when one
  // cannot be started.
  explicit Load(int processes);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  const std::vector<pid_t>& processes() const { return processes_; }

 private:
  void end();
  std::vector<pid_t> processes_;
};

}  // namespace keel::bench

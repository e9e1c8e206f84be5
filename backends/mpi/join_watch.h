// A watch on processes that should join the ranks and may never do so.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace keel::mpi {

// Ends this process with a message if another one that the same launcher has started here ends
// before it has joined the ranks, as a program does that is no keel. MPI would wait for it for
// ever. The class knows the launchers of Open MPI, and no processes on other machines.
class JoinWatch {
 public:
  explicit JoinWatch(const std::function<void(const std::string&)>& say);
  ~JoinWatch();
  JoinWatch(const JoinWatch&) = delete;
  JoinWatch& operator=(const JoinWatch&) = delete;

 private:
  void run();

  const std::function<void(const std::string&)>& say_;
  int expected_ = 0;  // processes of the launcher, this one included
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

}  // namespace keel::mpi

#include "bench/load.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "src/core/error.h"

namespace keel::bench {
namespace {

// Ends with the program that started it, however that ends. It takes no lock and no memory: other
// threads of that program may have held a lock when this process came to be.
[[noreturn]] void be_busy(std::vector<float>& numbers, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  volatile float* const at = numbers.data();
  while (true) {
    for (std::size_t i = 0; i < numbers.size(); ++i) at[i] = at[i] * 0.5f + 1;
  }
}

}  // namespace

Load::Load(int processes) {
  const int count = processes > 0 ? processes : int(std::thread::hardware_concurrency());
  std::vector<float> numbers(std::size_t{1} << 16);
  const pid_t parent = getpid();
  while (std::ssize(processes_) < count) {
    const pid_t child = fork();
    if (child == 0) be_busy(numbers, parent);
    const int problem = errno;
    if (child < 0) end();
    check(child > 0, ErrorKind::kIo, "no process that keeps a processor busy: {}",
          std::strerror(problem));
    processes_.push_back(child);
  }
}

Load::~Load() { end(); }

void Load::end() {
  for (const pid_t child : processes_) kill(child, SIGKILL);
  for (const pid_t child : processes_) waitpid(child, nullptr, 0);
  processes_.clear();
}

}  // namespace keel::bench

#include "backends/mpi/join_watch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "src/core/error.h"

namespace keel::mpi {
namespace {

bool is_launcher(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/comm", process));
  std::string name;
  std::getline(file, name);
  return name == "mpirun" || name == "mpiexec" || name == "orterun" || name == "orted";
}

pid_t parent_of(const std::filesystem::path& process) {
  std::ifstream file(process / "stat");
  std::string text;
  std::getline(file, text);
  // "pid (name) state parent ...", where the name may have any characters.
  const std::size_t after = text.rfind(')');
  if (after == std::string::npos || after + 4 > text.size()) return -1;
  return std::atoi(text.c_str() + after + 4);
}

// The processes that the launcher has started and that still run.
int count_processes() {
  int count = 0;
  std::error_code error;
  const std::filesystem::directory_iterator end;
  for (std::filesystem::directory_iterator it("/proc", error); !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    const bool is_process = name.find_first_not_of("0123456789") == std::string::npos;
    if (is_process && parent_of(it->path()) == getppid()) ++count;
  }
  return error ? std::numeric_limits<int>::max() : count;
}

}  // namespace

JoinWatch::JoinWatch(const std::function<void(const std::string&)>& say) : say_(say) {
  const char* size = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  expected_ = size == nullptr ? 0 : std::atoi(size);
  if (expected_ > 1 && is_launcher(getppid())) thread_ = std::thread(&JoinWatch::run, this);
}

JoinWatch::~JoinWatch() {
  ends_ = true;
  if (thread_.joinable()) thread_.join();
}

void JoinWatch::run() {
  using Clock = std::chrono::steady_clock;
  // The launcher may not have started all of them yet.
  constexpr std::chrono::milliseconds kFirst{3000}, kBetween{1000}, kPause{20};
  Clock::time_point next = Clock::now() + kFirst;
  for (int missed = 0; !ends_; std::this_thread::sleep_for(kPause)) {
    if (Clock::now() < next) continue;
    next = Clock::now() + kBetween;
    missed = count_processes() < expected_ ? missed + 1 : 0;
    if (missed < 2) continue;
    say_(fmt::format(
        "keel: error: one of the {} processes that mpirun has started here has ended and did not "
        "join the others; all end",
        expected_));
    std::_Exit(static_cast<int>(ErrorKind::kIo));
  }
}

}  // namespace keel::mpi

// Processes that keep processors busy.
#include "bench/load.h"

#include <doctest/doctest.h>

#include <csignal>
#include <vector>

namespace keel::bench {
namespace {

TEST_CASE("load: as many processes as wanted, which end with it") {
  std::vector<pid_t> processes;
  {
    const Load load(2);
    processes = load.processes();
    REQUIRE(processes.size() == 2);
    for (const pid_t process : processes) CHECK(kill(process, 0) == 0);
  }
  for (const pid_t process : processes) CHECK(kill(process, 0) == -1);
  const Load all(0);
  CHECK(all.processes().size() >= 1);
}

}  // namespace
}  // namespace keel::bench

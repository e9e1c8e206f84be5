// Timing in turns: order, warm-up and quantiles.
#include "bench/timing.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace keel::bench {
namespace {

TEST_CASE("timing: bodies run in turns, after a tenth as many rounds to warm up") {
  std::string order;
  const std::vector<std::function<void()>> bodies{[&] { order += 'a'; }, [&] { order += 'b'; }};
  CHECK(time_in_turns(bodies, 10).size() == 2);
  std::string expected;
  for (int i = 0; i < 11; ++i) expected += "ab";
  CHECK(order == expected);
}

TEST_CASE("timing: quantiles of what is measured") {
  int call = 0;
  const std::vector<std::function<void()>> bodies{
      [] {},
      // One call in five is slow: the slowest tenth shows it, the median does not.
      [&] {
        if (++call % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }};
  const std::vector<Timing> times = time_in_turns(bodies, 20);
  for (const Timing& t : times) {
    CHECK(t.p10 <= t.median);
    CHECK(t.median <= t.p90);
  }
  CHECK(times[1].p90 >= 0.02);
  CHECK(times[1].median < 0.02);
}

}  // namespace
}  // namespace keel::bench

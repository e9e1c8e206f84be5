// Timing in turns: order, warm-up and quantiles.
#include "bench/timing.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace keel::bench {
namespace {

TEST_CASE("timing: bodies run in turns, after one round and a tenth as many to warm up") {
  std::string order;
  const std::vector<std::function<void()>> bodies{[&] { order += 'a'; }, [&] { order += 'b'; }};
  CHECK(time_in_turns(bodies, 10).size() == 2);
  std::string expected;
  for (int i = 0; i < 12; ++i) expected += "ab";
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

TEST_CASE("timing: a sample is the mean of its repeats") {
  int calls = 0;
  const std::vector<std::function<void()>> bodies{[&] {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }};
  const Samples samples = sample_in_turns(bodies, 3, 4);
  CHECK(calls == 5 * 4);  // two rounds to warm up
  REQUIRE(samples.size() == 1);
  REQUIRE(samples[0].size() == 3);
  const double least = std::ranges::min(samples[0]);
  CHECK(least >= 0.005);
  CHECK(least < 0.02);  // four would take that long
}

TEST_CASE("timing: samplers run in turns, in blocks, and their samples are joined") {
  std::string order;
  const auto sampler = [&](std::string name, double first) {
    return [&order, name, first](int rounds) {
      order += fmt::format("{}{} ", name, rounds);
      std::vector<double> samples;
      for (int i = 0; i < rounds; ++i) samples.push_back(first + (rounds == 10 ? 0 : 100));
      return Samples{samples, samples};
    };
  };
  const std::vector<Sampler> samplers{sampler("a", 1), sampler("b", 2)};
  const std::vector<Timing> times = time_in_blocks(samplers, 25);
  CHECK(order == "a10 b10 a10 b10 a5 b5 ");
  REQUIRE(times.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(times[i].median == (i < 2 ? 1 : 2));
    CHECK(times[i].p90 == (i < 2 ? 101 : 102));
  }
}

}  // namespace
}  // namespace keel::bench

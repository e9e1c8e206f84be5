#include "bench/timing.h"

#include <algorithm>
#include <chrono>

namespace keel::bench {

std::vector<Timing> time_in_turns(std::span<const std::function<void()>> bodies, int rounds) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::vector<double>> times(bodies.size());
  for (int round = -(rounds + 9) / 10; round < rounds; ++round) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const auto start = Clock::now();
      bodies[i]();
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      if (round >= 0) times[i].push_back(seconds);
    }
  }
  std::vector<Timing> result;
  for (auto& t : times) {
    std::ranges::sort(t);
    result.push_back({t[t.size() / 2], t[t.size() / 10], t[t.size() * 9 / 10]});
  }
  return result;
}

}  // namespace keel::bench

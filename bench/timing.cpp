#include "bench/timing.h"

#include <algorithm>
#include <chrono>

namespace keel::bench {
namespace {

double host_seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Samples sample_in_turns(std::span<const std::function<void()>> bodies, int rounds, int repeats,
                        Backend* backend) {
  Samples samples(bodies.size());
  // Not counted: caches fill, and a program is recorded in its second run.
  const int warm_up = 1 + (rounds + 9) / 10;
  for (int round = -warm_up; round < rounds; ++round) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const auto calls = [&] {
        for (int call = 0; call < repeats; ++call) bodies[i]();
      };
      const double seconds = backend ? backend->seconds(calls) : host_seconds(calls);
      if (round >= 0) samples[i].push_back(seconds / repeats);
    }
  }
  return samples;
}

std::vector<Timing> timings_of(const Samples& samples) {
  std::vector<Timing> result;
  for (auto t : samples) {
    std::ranges::sort(t);
    result.push_back({t[t.size() / 2], t[t.size() / 10], t[t.size() * 9 / 10]});
  }
  return result;
}

std::vector<Timing> time_in_turns(std::span<const std::function<void()>> bodies, int rounds) {
  return timings_of(sample_in_turns(bodies, rounds));
}

std::vector<Timing> time_in_blocks(std::span<const Sampler> samplers, int rounds) {
  constexpr int kBlock = 10;
  std::vector<Samples> all(samplers.size());
  for (int done = 0; done < rounds; done += kBlock) {
    for (std::size_t s = 0; s < samplers.size(); ++s) {
      Samples block = samplers[s](std::min(kBlock, rounds - done));
      all[s].resize(block.size());
      for (std::size_t i = 0; i < block.size(); ++i) {
        all[s][i].insert(all[s][i].end(), block[i].begin(), block[i].end());
      }
    }
  }
  std::vector<Timing> result;
  for (const Samples& samples : all) {
    const std::vector<Timing> timings = timings_of(samples);
    result.insert(result.end(), timings.begin(), timings.end());
  }
  return result;
}

}  // namespace keel::bench

// Timing for benchmarks on shared, noisy machines: the things to compare run in turns, and medians
// are reported.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::bench {

struct Timing {
  double median = 0, p10 = 0, p90 = 0;  // seconds
};

// For each body the seconds of its timed calls.
using Samples = std::vector<std::vector<double>>;

// Runs the bodies in turns, `rounds` times after one round and a tenth as many to warm up. A sample
// is the time of `repeats` calls in a row, divided by their number, by the backend's clock or,
// without one, the host's.
Samples sample_in_turns(std::span<const std::function<void()>> bodies, int rounds, int repeats = 1,
                        Backend* backend = nullptr);

// Median and tenths of the samples of each body, at least one.
std::vector<Timing> timings_of(const Samples& samples);

std::vector<Timing> time_in_turns(std::span<const std::function<void()>> bodies, int rounds);

// Bodies that take their own samples, for the given number of rounds: those of another process.
using Sampler = std::function<Samples(int rounds)>;

// For several processes, whose idle threads may spin for a moment: a turn is a block of 10 rounds.
// Returns the timings of the first sampler's bodies, then of the second's, ....
std::vector<Timing> time_in_blocks(std::span<const Sampler> samplers, int rounds);

}  // namespace keel::bench

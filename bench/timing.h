// Timing for benchmarks on shared, noisy machines: what is compared is run in turns, and medians
// are reported.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace keel::bench {

struct Timing {
  double median = 0, p10 = 0, p90 = 0;  // seconds
};

// Runs the bodies in turns, `rounds` times after a tenth as many to warm up, and times each call.
std::vector<Timing> time_in_turns(std::span<const std::function<void()>> bodies, int rounds);

}  // namespace keel::bench

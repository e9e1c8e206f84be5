// Costs of work: how processor time grows with the input, and the memory that is added.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

#include "bench/peak_memory.h"

namespace keel::test {

// Seconds of this thread's processor time for `work`, the least of three times, so that other load
// of the machine hardly counts.
template <class Work>
double processor_seconds(const Work& work) {
  const auto now = [] {
    std::timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  };
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < 3; ++i) {
    const double begin = now();
    work();
    least = std::min(least, now() - begin);
  }
  return least;
}

// Whether the time of `work`, given a size, is proportional to it. For 16 times the size it may
// take 64 times as long; work that grows with the square takes 256 times as long.
template <class Work>
bool grows_in_proportion(std::size_t size, const Work& work) {
  constexpr double kShortest = 5e-4;  // seconds; shorter times cannot be measured
  const double small = processor_seconds([&] { work(size); });
  return processor_seconds([&] { work(16 * size); }) < 64 * std::max(small, kShortest);
}

using bench::peak_growth;
using bench::status_bytes;

}  // namespace keel::test

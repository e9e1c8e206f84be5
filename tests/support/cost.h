// What work costs: processor time that grows with its input, and memory beyond what was there.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>

namespace keel::test {

// Seconds of this thread's processor that `work` takes, the least of three times: what else the
// machine does hardly counts.
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

// Whether `work`, given a size, takes a time in proportion to it. Of 16 times the size it may take
// 64 times as long; what grows with the square takes 256 times as long.
template <class Work>
bool grows_in_proportion(std::size_t size, const Work& work) {
  constexpr double kShortest = 5e-4;  // seconds that can be told from none
  const double small = processor_seconds([&] { work(size); });
  return processor_seconds([&] { work(16 * size); }) < 64 * std::max(small, kShortest);
}

// A line of /proc/self/status in bytes, such as VmHWM.
inline std::int64_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::int64_t kib = 0;
  while (status >> word) {
    if (word == name + ":" && status >> kib) return kib * 1024;
  }
  return 0;
}

// The most bytes of memory that this process had during `work` beyond those it had before. Sound
// where no sanitizer keeps freed memory.
template <class Work>
std::int64_t peak_growth(const Work& work) {
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // the peak begins anew
  const std::int64_t before = status_bytes("VmRSS");
  work();
  return status_bytes("VmHWM") - before;
}

}  // namespace keel::test

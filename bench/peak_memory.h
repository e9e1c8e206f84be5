// The memory that some work adds to this process, by Linux's /proc.
#pragma once

#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace keel::bench {

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
  std::ofstream("/proc/self/clear_refs") << 5 << std::flush;  // the peak begins again
  const std::int64_t before = status_bytes("VmRSS");
  work();
  return status_bytes("VmHWM") - before;
}

}  // namespace keel::bench

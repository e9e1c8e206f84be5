// Counts the reads of a tensor by kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace keel::cuda::simt {

// While an object lives, it counts how often kernels read each float of a piece of memory
// through a Global of constants.
class ReadCount {
 public:
  ReadCount(const void* memory, std::int64_t floats)
      : memory_(static_cast<const std::byte*>(memory)), times_(std::size_t(floats)) {
    living().push_back(this);
  }
  ~ReadCount() { std::erase(living(), this); }
  ReadCount(const ReadCount&) = delete;
  ReadCount& operator=(const ReadCount&) = delete;

  const std::vector<int>& times() const { return times_; }
  static std::vector<ReadCount*>& living() {
    static std::vector<ReadCount*> counts;
    return counts;
  }
  void note(const void* from, std::size_t bytes) {
    const std::ptrdiff_t begin = static_cast<const std::byte*>(from) - memory_;
    if (begin < 0) return;
    const std::size_t first = std::size_t(begin) / sizeof(float);
    const std::size_t last = std::min(first + bytes / sizeof(float), times_.size());
    for (std::size_t i = first; i < last; ++i) ++times_[i];
  }

 private:
  const std::byte* memory_;
  std::vector<int> times_;
};

inline void note_read(const void* from, std::size_t bytes) {
  for (ReadCount* count : ReadCount::living()) count->note(from, bytes);
}

}  // namespace keel::cuda::simt

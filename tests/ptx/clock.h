// Which accesses of memory a block's barriers put in order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel::ptx {

// Who touched memory, and when: in which of his warp's epochs, which barriers divide.
struct Record {
  std::uint64_t is_there : 1 = 0;
  std::uint64_t is_of_many : 1 = 0;  // of several threads of the warp
  std::uint64_t bytes : 4 = 0;       // of the four that a record stands for
  std::uint64_t thread : 10 = 0;
  std::uint64_t epoch : 24 = 0;
  std::uint64_t block : 24 = 0;
};

// A vector clock for every warp of a block.
class Clock {
 public:
  explicit Clock(int warps);

  // These warps have met at a barrier.
  void meet(std::span<const int> warps);
  // The lanes of one warp have met.
  void meet_lanes(int warp) { ++epochs_[std::size_t(warp)]; }
  std::uint64_t epoch(int warp) const { return epochs_[std::size_t(warp)]; }
  // Whether what the record says has happened before what `now` says.
  bool is_ordered(const Record& record, const Record& now) const {
    if (record.block != now.block) return false;
    const auto then = int(record.thread / 32), warp = int(now.thread / 32);
    if (then == warp) {
      return record.epoch < now.epoch || (record.thread == now.thread && !record.is_of_many);
    }
    return record.epoch <= seen_[std::size_t(warp * warps_ + then)];
  }

 private:
  int warps_;
  std::vector<std::uint64_t> epochs_;  // that each warp is in
  std::vector<std::uint64_t> seen_;    // of each warp, the latest epoch of another that is over
};

}  // namespace keel::ptx

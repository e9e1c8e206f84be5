#include "tests/ptx/clock.h"

#include <algorithm>

namespace keel::ptx {

Clock::Clock(int warps)
    : warps_(warps), epochs_(std::size_t(warps), 1), seen_(std::size_t(warps * warps), 0) {}

void Clock::meet(std::span<const int> warps) {
  std::vector<std::uint64_t> joint(std::size_t(warps_), 0);
  for (const int warp : warps) {
    for (int other = 0; other < warps_; ++other) {
      std::uint64_t& latest = joint[std::size_t(other)];
      latest = std::max(latest, seen_[std::size_t(warp * warps_ + other)]);
    }
  }
  for (const int warp : warps) joint[std::size_t(warp)] = epochs_[std::size_t(warp)];
  for (const int warp : warps) {
    std::copy(joint.begin(), joint.end(), seen_.begin() + std::ptrdiff_t(warp) * warps_);
    ++epochs_[std::size_t(warp)];
  }
}

}  // namespace keel::ptx

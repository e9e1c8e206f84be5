// A random stream at one update, in the form that kernels need to draw many numbers at once.
#pragma once

#include <cstdint>

namespace keel::onednn {

struct PhiloxStream {
  static constexpr int kRounds = 10;
  std::uint64_t keys[kRounds][2];  // each a word, in the width of the products that use it
  std::uint32_t stream, step;

  // The stream of an op that has the attributes `seed` and `stream`.
  template <class Attrs>
  static PhiloxStream of(const Attrs& attrs, std::int32_t step) {
    PhiloxStream of{{}, std::uint32_t(attrs.stream), std::uint32_t(step)};
    auto low = std::uint32_t(attrs.seed), high = std::uint32_t(std::uint64_t(attrs.seed) >> 32);
    for (auto& key : of.keys) {
      key[0] = low;
      key[1] = high;
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
    return of;
  }
};

}  // namespace keel::onednn

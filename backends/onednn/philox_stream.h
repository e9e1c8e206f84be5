// A random stream at one update, as kernels that draw many numbers at once take it.
#pragma once

#include <cstdint>

namespace keel::onednn {

struct PhiloxStream {
  std::uint32_t key[2], stream, tick;

  // The stream of an op that has the attributes `seed` and `stream`.
  template <class Attrs>
  static PhiloxStream of(const Attrs& attrs, std::int32_t tick) {
    return {{std::uint32_t(attrs.seed), std::uint32_t(std::uint64_t(attrs.seed) >> 32)},
            std::uint32_t(attrs.stream),
            std::uint32_t(tick)};
  }
};

}  // namespace keel::onednn

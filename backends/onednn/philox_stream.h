// A random stream at one step, as kernels that draw many numbers at once take it.
#pragma once

#include <cstdint>

namespace keel::onednn {

struct PhiloxStream {
  std::uint32_t key[2], stream, step;

  static PhiloxStream of(std::int64_t seed, std::int64_t stream, std::int32_t step) {
    return {{std::uint32_t(seed), std::uint32_t(std::uint64_t(seed) >> 32)},
            std::uint32_t(stream),
            std::uint32_t(step)};
  }
};

}  // namespace keel::onednn

// Indices of 32 bits where they suffice: a division of 64 bits takes several times as long.
#pragma once

#include "backends/cuda/device.h"

namespace keel::cuda {

// Elements up to here have indices of 32 bits, even one stride of a whole grid beyond the last.
inline constexpr std::int64_t kMostShort = std::int64_t{1} << 30;

// Calls f with a value of the type for indices of tensors of at most so many elements.
template <class F>
void with_index(std::int64_t most_elements, F f) {
  if (most_elements <= kMostShort) {
    f(std::int32_t{});
  } else {
    f(std::int64_t{});
  }
}

}  // namespace keel::cuda

// Indices of 32 bits where they suffice: a division of 64 bits takes several times as long.
#pragma once

#include "backends/cuda/short_index.h"

namespace keel::cuda {

// Calls f with a value of the type for indices of tensors of at most so many elements.
template <class F>
void with_index(std::int64_t most_elements, F f) {
  if (most_elements <= most_short_elements) {
    f(std::int32_t{});
  } else {
    f(std::int64_t{});
  }
}

}  // namespace keel::cuda

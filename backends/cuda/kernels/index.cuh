// Indices of 32 bits where they suffice: a division of 64 bits takes several times as long.
#pragma once

#include "backends/cuda/device.h"
#include "backends/cuda/short_index.h"

namespace keel::cuda {

// a / b and a % b for numbers of which a is at least 0 and b above 0. A division of 32 bits takes a
// fraction of the time of one of 64.
struct Divided {
  std::int64_t quotient, rest;

  __device__ Divided(std::int64_t a, std::int64_t b) {
    if ((a | b) >> 32 == 0) {
      quotient = std::uint32_t(a) / std::uint32_t(b);
    } else {
      quotient = a / b;
    }
    rest = a - quotient * b;
  }
};

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

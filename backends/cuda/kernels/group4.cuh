// Four neighbouring elements, which one thread of an element-wise kernel processes together.
#pragma once

#include "backends/cuda/device.h"

namespace keel::cuda {

struct Group4 {
  float at[4];
};

// The number of groups of four that hold n elements; the last may be partly filled.
__host__ __device__ inline std::int64_t groups4_of(std::int64_t n) { return (n + 3) / 4; }

// Elements 4 q to 4 q + 3 of x; 0 past the end and where x is absent.
__device__ inline Group4 load_group4(Global<const float> x, std::int64_t q) {
  if (4 * q + 4 <= x.size()) {
    const float4 four = x.load4(4 * q);
    return {four.x, four.y, four.z, four.w};
  }
  Group4 group4{};
  for (int i = 0; i < 4; ++i) {
    if (4 * q + i < x.size()) group4.at[i] = x[4 * q + i];
  }
  return group4;
}

__device__ inline void store_group4(Global<float> x, std::int64_t q, const Group4& group4) {
  if (4 * q + 4 <= x.size()) {
    x.store4(4 * q, make_float4(group4.at[0], group4.at[1], group4.at[2], group4.at[3]));
    return;
  }
  for (int i = 0; i < 4; ++i) {
    if (4 * q + i < x.size()) x[4 * q + i] = group4.at[i];
  }
}

// A grid with one thread for every four of n elements.
inline Grid one_thread_a_group4(std::int64_t n) { return one_thread_each(groups4_of(n)); }

}  // namespace keel::cuda

// Four neighbouring elements, which one thread of an element-wise kernel processes together.
#pragma once

#include "backends/cuda/device.h"

namespace keel::cuda {

struct Quad {
  float at[4];
};

// The number of quads that hold n elements; the last quad may be partly filled.
__host__ __device__ inline std::int64_t quads_of(std::int64_t n) { return (n + 3) / 4; }

// Quad q of x; 0 past the end and where x is absent.
__device__ inline Quad load_quad(Global<const float> x, std::int64_t q) {
  if (4 * q + 4 <= x.size()) {
    const float4 four = x.load4(4 * q);
    return {four.x, four.y, four.z, four.w};
  }
  Quad quad{};
  for (int i = 0; i < 4; ++i) {
    if (4 * q + i < x.size()) quad.at[i] = x[4 * q + i];
  }
  return quad;
}

__device__ inline void store_quad(Global<float> x, std::int64_t q, const Quad& quad) {
  if (4 * q + 4 <= x.size()) {
    x.store4(4 * q, make_float4(quad.at[0], quad.at[1], quad.at[2], quad.at[3]));
    return;
  }
  for (int i = 0; i < 4; ++i) {
    if (4 * q + i < x.size()) x[4 * q + i] = quad.at[i];
  }
}

// A grid with one thread for each quad of n elements.
inline Grid one_thread_a_quad(std::int64_t n) { return one_thread_each(quads_of(n)); }

}  // namespace keel::cuda

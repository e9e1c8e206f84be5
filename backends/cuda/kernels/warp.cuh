// Sums and maxima over a warp or a block. Every lane takes part and every lane gets the result; the
// order of additions is fixed, so that results are the same bits from run to run.
#pragma once

#include <cmath>

#include "backends/cuda/device.h"

namespace keel::cuda {

struct Add {
  static constexpr float kNeutral = 0;
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

// The larger one; a NaN is larger than every number.
struct Largest {
  static constexpr float kNeutral = -INFINITY;
  template <class T>
  __device__ T operator()(T a, T b) const {
    return isnan(a) || a >= b ? a : b;
  }
};

template <class Join, class T>
__device__ T over_warp(T value, Join join) {
  for (int other = kWarp / 2; other > 0; other /= 2) {
    value = join(value, __shfl_xor_sync(kAllLanes, value, other));
  }
  return value;
}

// kThreads: the block's threads, a multiple of 32. Ends with a barrier that lets `scratch` be used
// again.
template <int kThreads, class Join, class T>
__device__ T over_block(T value, Join join) {
  __shared__ Shared<T, kWarp> scratch;
  value = over_warp(value, join);
  if constexpr (kThreads > kWarp) {
    const int warp = int(threadIdx.x) / kWarp, lane = int(threadIdx.x) % kWarp;
    if (lane == 0) scratch[warp] = value;
    __syncthreads();
    value = over_warp(lane < kThreads / kWarp ? scratch[lane] : T(Join::kNeutral), join);
    __syncthreads();
  }
  return value;
}

}  // namespace keel::cuda

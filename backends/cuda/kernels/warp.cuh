// Sums and maxima over a warp or a block. All lanes must take part and all get the result. The
// order of additions is fixed, so results have the same bits from run to run.
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

// The larger value; NaN counts as larger than every number.
struct Largest {
  static constexpr float kNeutral = -INFINITY;
  template <class T>
  __device__ T operator()(T a, T b) const {
    return isnan(a) || a >= b ? a : b;
  }
};

// Reduces over kLanes neighbouring lanes; kLanes is a power of 2.
template <int kLanes, class Join, class T>
__device__ T over_lanes(T value, Join join) {
  for (int other = kLanes / 2; other > 0; other /= 2) {
    value = join(value, __shfl_xor_sync(kAllLanes, value, other));
  }
  return value;
}

template <class Join, class T>
__device__ T over_warp(T value, Join join) {
  return over_lanes<kWarp>(value, join);
}

// Reduces over a block of kThreads threads, a multiple of 32. The first warp joins the values that
// all threads left in shared memory. There are two barriers, so a caller may call again at once:
// the result is not overwritten before all threads have read it.
template <int kThreads, class Join, class T>
__device__ T over_block(T value, Join join) {
  static_assert(kThreads > kWarp && kThreads % kWarp == 0);
  __shared__ Shared<T, kThreads> values;
  __shared__ Shared<T, 1> result;
  const int thread = int(threadIdx.x);
  values[thread] = value;
  __syncthreads();
  if (thread < kWarp) {
    for (int i = thread + kWarp; i < kThreads; i += kWarp) value = join(value, values[i]);
    value = over_warp(value, join);
    if (thread == 0) result[0] = value;
  }
  __syncthreads();
  return result[0];
}

}  // namespace keel::cuda

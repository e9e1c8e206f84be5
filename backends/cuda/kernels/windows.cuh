// Windows that slide over an image, along one axis.
#pragma once

#include "backends/cuda/device.h"
#include "backends/cuda/kernels/index.cuh"

namespace keel::cuda {

// The windows that contain `at`: those from `first` up to `end`.
template <class Index>
struct Covering {
  Index first, end;
};

// Window i covers [i * stride, i * stride + window); there are `count` windows.
template <class Index>
__device__ Covering<Index> covering(Index at, Index window, Index stride, Index count) {
  const Index end = at / stride + 1;
  return {at < window ? 0 : (at - window) / stride + 1, end < count ? end : count};
}

}  // namespace keel::cuda

// Windows that slide over an image, along one axis.
#pragma once

#include "backends/cuda/device.h"

namespace keel::cuda {

// The windows that contain `at`: those from `first` up to `end`.
struct Covering {
  std::int64_t first, end;
};

// Window i covers [i * stride, i * stride + window); there are `count` windows.
__device__ inline Covering covering(std::int64_t at, std::int64_t window, std::int64_t stride,
                                    std::int64_t count) {
  const std::int64_t end = at / stride + 1;
  return {at < window ? 0 : (at - window) / stride + 1, end < count ? end : count};
}

}  // namespace keel::cuda

// Code shared by the gradients of losses.
#pragma once

#include "backends/cuda/device.h"

namespace keel::cuda {

// The gradient that reaches every term: dmean / count + dsum; either may be absent.
struct TermGradient {
  Global<const float> dmean, dsum;
  __device__ float operator()(double count) const {
    return float((dmean ? dmean[0] / count : 0) + dsum.get(0, 0));
  }
};

}  // namespace keel::cuda

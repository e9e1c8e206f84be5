// One step of an element-wise program on a range of floats, vectorised.
#pragma once

#include <cstddef>

#include "src/ops/elementwise.h"

namespace keel::onednn {

// The maximum number of floats in a register on any target.
inline constexpr std::size_t kMaxLanes = 16;

// The operand of a step: contiguous floats (step 1), or kMaxLanes copies of one float that are read
// again and again (step 0).
struct Stream {
  const float* data = nullptr;
  std::size_t step = 1;
};

struct StepArgs {
  Stream source[3];
  float* out = nullptr;  // may equal any source's data
  std::size_t n = 0;
  float factor = 1, offset = 0;  // for kScale
};

// out[i] = code(source[0][i], source[1][i], source[2][i]) for i in [0, n), as evaluate() defines
// it; comparisons give 0 or 1.
void run_step(EwCode code, const StepArgs& args);

}  // namespace keel::onednn

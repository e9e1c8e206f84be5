// The tensors and the sums of the norms of elements, y = gain f(u) + bias with u = alpha x + shift.
#pragma once

#include "backends/onednn/kernels/norm/tile_plan.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// y is output 0 of the binding.
struct CurveForward {
  const Binding& binding;
  TensorRef x, gain, bias, alpha, shift;
};

// dx is output 0 of the binding.
struct CurveBackward {
  const Binding& binding;
  TensorRef x, gain, alpha, shift, dy, dgain, dbias, dalpha, dshift;
};

// The one number of a tensor, or 0 where it is absent.
inline float number_of(const TensorRef& t) { return t ? *t.as<float>() : 0; }

// The sums of a column: of dy f(u), dy, k x and k, where k = dy gain f'(u). The last two are added
// up over all columns.
struct CurveSums {
  enum : std::size_t { kGain, kBias, kAlpha, kShift, kCount };
};
using CurvePlan = TilePlan<CurveSums::kCount, CurveSums::kAlpha>;

}  // namespace keel::onednn

// Scaled l2 normalization over the last `axes` axes (Nguyen, Salazar 2019):
//     y = gain * xhat,   xhat = x * rnorm,   rnorm = 1 / max(|x|, eps)
// with |x| = sqrt(sum x^2) of one row and a single gain (the paper's g, at first sqrt(width)).
//   x (..., width) floating, width = product of the last `axes` sizes; rows = the others
//   gain (1), or absent
//   outputs: y like x;  rnorm (rows)
// backward (Exact), scale_norm_backward (x, gain, rnorm, dy):
//     dx = gain * rnorm * (dy - xhat * sum(dy * xhat)),   without the sum where |x| <= eps, as
//       floats tell;
//     dgain = sum over all of dy * xhat
//   outputs: dx like x;  dgain (1), or (0) when absent
// errors: rank below `axes`; width 0; gain of another shape; eps < 0.
// in place: none forward (x is saved); dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct ScaleNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("axes", &ScaleNormAttrs::axes), field("eps", &ScaleNormAttrs::eps)};
  }
};

extern const OpInfo kScaleNorm, kScaleNormBackward;

namespace ops {

// Returns y; rnorm is output 1.
Value scale_norm(Graph& g, Value x, Value gain, const ScaleNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

// Scaled l2 normalization over the last `axes` axes (Nguyen, Salazar 2019):
//     y = gain * xhat,   xhat = x * rstd,   rstd = 1 / max(|x|, eps)
// |x| = sqrt(sum x^2) is the length of one row, and there is one gain for all elements, which the
// paper calls g and starts at sqrt(width).
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   gain (1), or absent
//   outputs: y like x;  rstd (rows)
// backward (Exact), scale_norm_backward (x, gain, rstd, dy):
//     dx = gain * rstd * (dy - xhat * sum(dy * xhat))
//     dgain = sum over all elements of dy * xhat
//   dx has no sum where |x| <= eps, that is, where the saved rstd equals 1 / eps.
//   outputs: dx like x;  dgain (1), or (0) when absent
// errors: rank below `axes`; width 0; gain of another shape; eps < 0.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct ScaleNormInput {
  enum Place : int { kX, kGain };
};
struct ScaleNormOutput {
  enum Place : int { kY, kRstd };
};
struct ScaleNormBackwardInput {
  enum Place : int { kX, kGain, kRstd, kDy };
};
struct ScaleNormGradient {
  enum Place : int { kDx, kDgain };
};

struct ScaleNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("axes", &ScaleNormAttrs::axes), field("eps", &ScaleNormAttrs::eps)};
  }
};

extern const OpInfo kScaleNorm, kScaleNormBackward;

namespace ops {

// Returns y.
Value scale_norm(Graph& g, Value x, Value gain, const ScaleNormAttrs& attrs = {});
// x / max(|x|, 1e-12)
Value unit_rows(Graph& g, Value x);

}  // namespace ops
}  // namespace keel

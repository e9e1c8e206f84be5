// Root mean square normalization over the last `axes` axes (Zhang, Sennrich 2019):
//     y = xhat * w + bias,   xhat = x * rstd,   rstd = 1 / sqrt(mean(x^2) + eps)
// with w = offset + gain, or 1 without a gain. The mean is that of one row; by default eps is 1e-8
// and offset 0. Some models keep gain - 1 and have offset 1.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   gain, bias: the shape of the last `axes` axes, each present or absent
//   outputs: y like x;  rstd (rows)
// backward (Exact), rms_norm_backward (x, gain, rstd, dy), with g = dy * w:
//     dx = rstd * (g - xhat * mean(g * xhat))
//     dgain = sum over rows of dy * xhat;   dbias = sum over rows of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank below `axes`; width 0; gain or bias of another shape; eps < 0.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

using RmsNormInput = AffineInput;
struct RmsNormOutput {
  enum Place : int { kY, kRstd };
};
struct RmsNormBackwardInput {
  enum Place : int { kX, kGain, kRstd, kDy };
};
using RmsNormGradient = AffineGradient;

struct RmsNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-8;
  double offset = 0;
  static constexpr auto fields() {
    return std::tuple{field("axes", &RmsNormAttrs::axes), field("eps", &RmsNormAttrs::eps),
                      field("offset", &RmsNormAttrs::offset)};
  }
};
using RmsNormBackwardAttrs = WithDbias<RmsNormAttrs>;

extern const OpInfo kRmsNorm, kRmsNormBackward;

namespace ops {

// Returns y.
Value rms_norm(Graph& g, Value x, const NormAffine& affine, const RmsNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

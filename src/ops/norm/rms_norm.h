// Root mean square normalization over the last `axes` axes (Zhang, Sennrich 2019):
//     y = xhat * gain + bias,   xhat = x * rrms,   rrms = 1 / sqrt(mean(x^2) + eps)
// with the mean over one row; eps 1e-8 is inside the root.
//   x (..., width) floating, width = product of the last `axes` sizes; rows = the others
//   gain, bias: the shape of the last `axes` axes, each present or absent
//   outputs: y like x;  rrms (rows)
// backward (Exact), rms_norm_backward (x, gain, rrms, dy), with g = dy * gain:
//     dx = rrms * (g - xhat * mean(g * xhat));   dgain = sum over rows of dy * xhat;
//     dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank below `axes`; width 0; gain or bias of another shape; eps < 0.
// in place: none forward (x is saved); dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct RmsNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-8;
  bool has_bias = false;  // backward only: whether dbias is wanted
  static constexpr auto fields() {
    return std::tuple{field("axes", &RmsNormAttrs::axes), field("eps", &RmsNormAttrs::eps),
                      field("has_bias", &RmsNormAttrs::has_bias)};
  }
};

extern const OpInfo kRmsNorm, kRmsNormBackward;

namespace ops {

// Returns y; rrms is output 1.
Value rms_norm(Graph& g, Value x, const NormAffine& affine, const RmsNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

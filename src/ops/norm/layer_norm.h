// Layer normalization over the last `axes` axes (Ba, Kiros, Hinton 2016, eq. 3):
//     y = xhat * gain + bias,   xhat = (x - mean) * rstd,   rstd = 1 / s
// The mean and s (see NormStatistic) are those of one row; by default s is biased and has eps 1e-5
// inside the root.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   gain, bias: the shape of the last `axes` axes, each present or absent
//   outputs: y like x;  mean (rows);  rstd (rows)
// backward (Exact), layer_norm_backward (x, gain, mean, rstd, dy), with g = dy * gain:
//     dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r)
//     dgain = sum over rows of dy * xhat;   dbias = sum over rows of dy
//   r is 1, or with eps_outside s / (s - eps), which is taken as 0 on a constant row.
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank below `axes`; width 0; gain or bias of another shape; eps < 0; width 1 if unbiased.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

using LayerNormInput = AffineInput;
using LayerNormOutput = CentredOutput;
using LayerNormBackwardInput = CentredAffineBackwardInput;
using LayerNormGradient = AffineGradient;

struct LayerNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  static constexpr auto fields() {
    return std::tuple{field("axes", &LayerNormAttrs::axes), field("eps", &LayerNormAttrs::eps),
                      field("unbiased", &LayerNormAttrs::unbiased),
                      field("eps_outside", &LayerNormAttrs::eps_outside)};
  }
  NormStatistic statistic() const { return {eps, unbiased, eps_outside}; }
};
using LayerNormBackwardAttrs = WithDbias<LayerNormAttrs>;

extern const OpInfo kLayerNorm, kLayerNormBackward;

namespace ops {

// Returns y.
Value layer_norm(Graph& g, Value x, const NormAffine& affine, const LayerNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

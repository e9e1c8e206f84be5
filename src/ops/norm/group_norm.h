// Group normalization (Wu & He 2018) of the features of one group of one sample:
//     y = xhat * gain + bias,   xhat = (x - mean) * rstd,   rstd = 1 / s
// The mean and s (see NormStatistic) are those of one group; by default s is biased and has eps
// 1e-5 inside the root.
//   x (rows, channels) tokens, or (n, channels, h, w) images; a sample is a row or an image, and a
//     group is its next channels / groups channels, with all their h * w elements
//   gain, bias (channels), each present or absent
//   outputs: y like x;  mean, rstd (samples, groups)
// With groups = 1 on tokens this is layer norm, with groups = channels on images instance norm
// (Ulyanov, Vedaldi, Lempitsky 2016).
// backward (Exact), group_norm_backward (x, gain, mean, rstd, dy), with g = dy * gain:
//     dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r)
//     dgain = sum of dy * xhat;   dbias = sum of dy, both over a channel
//   r is 1, or with eps_outside s / (s - eps), which is taken as 0 on a constant group.
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank neither 2 nor 4; groups no divisor of channels; an empty group; gain or bias not
// (channels); eps < 0; unbiased with one element a group.    in place: dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

using GroupNormInput = AffineInput;
using GroupNormOutput = CentredOutput;
using GroupNormBackwardInput = CentredAffineBackwardInput;
using GroupNormGradient = AffineGradient;

struct GroupNormAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  static constexpr auto fields() {
    return std::tuple{field("groups", &GroupNormAttrs::groups), field("eps", &GroupNormAttrs::eps),
                      field("unbiased", &GroupNormAttrs::unbiased),
                      field("eps_outside", &GroupNormAttrs::eps_outside)};
  }
  NormStatistic statistic() const { return {eps, unbiased, eps_outside}; }
};
using GroupNormBackwardAttrs = WithDbias<GroupNormAttrs>;

extern const OpInfo kGroupNorm, kGroupNormBackward;

namespace ops {

// Returns y.
Value group_norm(Graph& g, Value x, const NormAffine& affine, const GroupNormAttrs& attrs);

}  // namespace ops
}  // namespace keel

// Group normalization (Wu & He 2018) of the features of one group of one sample:
//     y = xhat * gain + bias,   xhat = (x - mean) * rstd,   rstd = 1 / s
// with the mean and s (see NormStatistic; biased, eps 1e-5 inside the root) of one group.
//   x (rows, channels) tokens, or (n, channels, h, w) images; a sample is a row or an image, a
//     group its next channels / groups channels, with all their h * w elements
//   gain, bias (channels), each present or absent
//   outputs: y like x;  mean, rstd (samples, groups)
// groups = 1 on tokens is layer norm, groups = channels on images is instance norm (Ulyanov,
// Vedaldi, Lempitsky 2016).
// backward (Exact), group_norm_backward (x, gain, mean, rstd, dy), with g = dy * gain:
//     dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r),   r = 1, or s / (s - eps) for
//     eps_outside (0 on a constant group);   dgain = sum of dy * xhat;   dbias = sum of dy
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// errors: rank neither 2 nor 4; groups no divisor of channels; an empty group; gain or bias not
// (channels); eps < 0; unbiased with one element a group.    in place: dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

struct GroupNormAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  bool has_bias = false;  // backward only: whether dbias is wanted
  static constexpr auto fields() {
    return std::tuple{field("groups", &GroupNormAttrs::groups), field("eps", &GroupNormAttrs::eps),
                      field("unbiased", &GroupNormAttrs::unbiased),
                      field("eps_outside", &GroupNormAttrs::eps_outside),
                      field("has_bias", &GroupNormAttrs::has_bias)};
  }
  NormStatistic statistic() const { return {eps, unbiased, eps_outside}; }
};

// x seen as (samples, groups, channels, inner), with the channels of one group: inner = 1 for
// tokens, h * w for images. The elements of a group are neighbours.
struct GroupSizes {
  std::int64_t samples, groups, channels, inner;
  std::int64_t width() const { return channels * inner; }
};
GroupSizes group_sizes(const Shape& x, std::int64_t groups);

extern const OpInfo kGroupNorm, kGroupNormBackward;

namespace ops {

// Returns y; mean and rstd are outputs 1 and 2.
Value group_norm(Graph& g, Value x, const NormAffine& affine, const GroupNormAttrs& attrs);

}  // namespace ops
}  // namespace keel

// Instance normalization (Ulyanov, Vedaldi, Lempitsky 2016) of sequences: a feature of one sample
// is normalized over the time steps,
//     y = xhat * gain + bias,   xhat = (x - mean) * rstd,   rstd = 1 / s
// The mean and s = sqrt(SS / N + eps), SS = sum of (x - mean)^2, are those of the N steps of a
// sample that the mask keeps. A sample of which it keeps none has mean 0 and SS = 0.
//   x (n, steps, channels);  gain, bias (channels), each present or absent
//   mask u8 (n, steps) or absent: steps with 0 are padding and take no part; their y and dx are 0
//   outputs: y like x;  mean, rstd (n, channels)
// backward (Exact), instance_norm_backward (x, gain, mean, rstd, dy, mask), with g = dy * gain:
//     dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) over the kept steps of a sample
//     dgain = sum of dy * xhat;   dbias = sum of dy, both over the kept steps of all samples
//   outputs: dx like x;  dgain, dbias like gain and bias, or (0) when absent
// For images there is group_norm, with each channel as a group.
// errors: rank not 3; no sample or step; gain or bias not (channels); a mask not u8 (n, steps); eps
// < 0.    in place: dx over dy.
#pragma once

#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"

namespace keel {

struct InstanceNormInput {
  enum Place : int { kX, kGain, kBias, kMask };
};
using InstanceNormOutput = CentredOutput;
struct InstanceNormBackwardInput {
  enum Place : int { kX, kGain, kMean, kRstd, kDy, kMask };
};
using InstanceNormGradient = AffineGradient;

struct InstanceNormAttrs {
  double eps = 1e-5;
  static constexpr auto fields() { return std::tuple{field("eps", &InstanceNormAttrs::eps)}; }
};
using InstanceNormBackwardAttrs = WithDbias<InstanceNormAttrs>;

extern const OpInfo kInstanceNorm, kInstanceNormBackward;

namespace ops {

// Returns y.
Value instance_norm(Graph& g, Value x, const NormAffine& affine, Value mask,
                    const InstanceNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

// LayerNorm-simple whose statistics count, in part or all, as constants in the backward (Xu, Sun,
// Zhang, Zhao, Lin 2019): DetachNorm (eq. 4) detaches mean and variance, DetachMean and
// DetachVariance (section 3.3) detach one of them. Over the last `axes` axes:
//     y = xhat = (x - mean) * rstd,   rstd = 1 / s
// The mean and s (see NormStatistic) are those of one row; by default s is biased and has eps 1e-5
// inside the root.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   outputs: y like x;  mean (rows);  rstd (rows)
// backward (Detached), detach_norm_backward (x, mean, rstd, dy):
//     DetachNorm       dx = rstd * dy
//     DetachVariance   dx = rstd * (dy - mean(dy))
//     DetachMean       dx = rstd * (dy - xhat * sum(dy * xhat) / N * r)
//   r is 1, or with eps_outside s / (s - eps), which is taken as 0 on a constant row.
//   outputs: dx like dy. x and mean are absent when the variance is detached.
// errors: rank below `axes`; width 0; eps < 0; unbiased with width 1; nothing detached.
// in place: dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

using DetachNormInput = NormInput;
using DetachNormOutput = CentredOutput;
using DetachNormBackwardInput = CentredBackwardInput;
using DetachNormGradient = NormGradient;

struct DetachNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  bool detach_mean = true, detach_variance = true;
  static constexpr auto fields() {
    return std::tuple{field("axes", &DetachNormAttrs::axes),
                      field("eps", &DetachNormAttrs::eps),
                      field("unbiased", &DetachNormAttrs::unbiased),
                      field("eps_outside", &DetachNormAttrs::eps_outside),
                      field("detach_mean", &DetachNormAttrs::detach_mean),
                      field("detach_variance", &DetachNormAttrs::detach_variance)};
  }
  NormStatistic statistic() const { return {eps, unbiased, eps_outside}; }
};

extern const OpInfo kDetachNorm, kDetachNormBackward;

namespace ops {

// Returns y.
Value detach_norm(Graph& g, Value x, const DetachNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

// LayerNorm-simple whose statistics count, in part or all, as constants in the backward (Xu, Sun,
// Zhang, Zhao, Lin 2019): DetachNorm (eq. 4) detaches mean and variance, DetachMean and
// DetachVariance (section 3.3) one of them. Over the last `axes` axes:
//     y = xhat = (x - mean) * rstd,   rstd = 1 / s
// with the mean and s (see NormStatistic; biased, eps 1e-5 inside the root) of one row.
//   x (..., width) floating, width = product of the last `axes` sizes; rows = the others
//   outputs: y like x;  mean (rows);  rstd (rows)
// backward (Detached), detach_norm_backward (x, mean, rstd, dy):
//     DetachNorm       dx = rstd * dy
//     DetachVariance   dx = rstd * (dy - mean(dy))
//     DetachMean       dx = rstd * (dy - xhat * sum(dy * xhat) / N * r),   r = 1, or s / (s - eps)
//                      for eps_outside (0 on a constant row)
//   x and mean are absent when the variance is detached.      outputs: dx like dy
// errors: rank below `axes`; width 0; eps < 0; unbiased with width 1; nothing detached.
// in place: none forward; dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

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

// Returns y; mean and rstd are outputs 1 and 2.
Value detach_norm(Graph& g, Value x, const DetachNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

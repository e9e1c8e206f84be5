// Adaptive normalization over the last `axes` axes (Xu, Sun, Zhang, Zhao, Lin 2019, eq. 6 to 9):
//     y = phi * xhat,   phi = C * (1 - k * xhat),   xhat = (x - mean) * rstd,   rstd = 1 / s
// The mean and s (see NormStatistic) are those of one row; by default s is biased and has eps 1e-5
// inside the root. The authors' program takes an unbiased s and adds eps outside the root. phi is
// not clamped: it is negative where xhat > 1 / k.
//   x (..., width) floating; width is the product of the last `axes` sizes, rows that of the others
//   outputs: y like x;  mean (rows);  rstd (rows)
// backward (Detached: phi counts as a constant), ada_norm_backward (x, mean, rstd, dy):
//     dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r),   g = phi * dy
//   r is 1, or with eps_outside s / (s - eps), which is taken as 0 on a constant row. With `detach`
//   off the gradient is exact: g = C * (1 - 2 * k * xhat) * dy.
//   outputs: dx like x
// errors: rank below `axes`; width 0; eps < 0; unbiased with width 1.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

using AdaNormInput = NormInput;
using AdaNormOutput = CentredOutput;
using AdaNormBackwardInput = CentredBackwardInput;
using AdaNormGradient = NormGradient;

struct AdaNormAttrs {
  std::int64_t axes = 1;
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
  double C = 1, k = 0.1;
  bool detach = true;
  static constexpr auto fields() {
    return std::tuple{field("axes", &AdaNormAttrs::axes),
                      field("eps", &AdaNormAttrs::eps),
                      field("unbiased", &AdaNormAttrs::unbiased),
                      field("eps_outside", &AdaNormAttrs::eps_outside),
                      field("C", &AdaNormAttrs::C),
                      field("k", &AdaNormAttrs::k),
                      field("detach", &AdaNormAttrs::detach)};
  }
  NormStatistic statistic() const { return {eps, unbiased, eps_outside}; }
};

extern const OpInfo kAdaNorm, kAdaNormBackward;

namespace ops {

// Returns y.
Value ada_norm(Graph& g, Value x, const AdaNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

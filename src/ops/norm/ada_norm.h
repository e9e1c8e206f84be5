// Adaptive normalization over the last `axes` axes (Xu, Sun, Zhang, Zhao, Lin 2019, eq. 6 to 9):
//     y = phi * xhat,   phi = C * (1 - k * xhat),   xhat = (x - mean) * rstd,   rstd = 1 / s
// with the mean and s (see NormStatistic; biased, eps 1e-5 inside the root) of one row. The
// authors' program has an unbiased s with eps outside the root. phi is not clamped: it is negative
// where xhat > 1 / k.
//   x (..., width) floating, width = product of the last `axes` sizes; rows = the others
//   outputs: y like x;  mean (rows);  rstd (rows)
// backward (Detached: phi counts as constant), ada_norm_backward (x, mean, rstd, dy):
//     dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r),   g = phi * dy,
//     r = 1, or s / (s - eps) for eps_outside (0 on a constant row)
//   with `detach` off the exact gradient: g = C * (1 - 2 * k * xhat) * dy
//   outputs: dx like x
// errors: rank below `axes`; width 0; eps < 0; unbiased with width 1.
// in place: none forward (x is saved); dx over dy.
#pragma once

#include "src/ops/norm/norm.h"

namespace keel {

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

// Returns y; mean and rstd are outputs 1 and 2.
Value ada_norm(Graph& g, Value x, const AdaNormAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

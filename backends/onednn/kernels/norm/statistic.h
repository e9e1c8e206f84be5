// Converts a variance, and a saved rstd, into the scalars that a norm needs.
#pragma once

#include <cmath>

#include "src/ops/norm/norm.h"

namespace keel::onednn {

// Returns 1 / s, where s = sqrt(variance + eps), or sqrt(variance) + eps.
inline double rstd_of(const NormStatistic& statistic, double variance) {
  return statistic.eps_outside ? 1 / (std::sqrt(variance) + statistic.eps)
                               : 1 / std::sqrt(variance + statistic.eps);
}

// The factor r in the slope of dx: 1, or s / (s - eps) if eps is outside the root; then 0
// where all elements are equal.
inline double slope_factor(const NormStatistic& statistic, double rstd) {
  if (!statistic.eps_outside) return 1;
  const double deviation = 1 / rstd - statistic.eps;
  return deviation > 0 ? 1 / (rstd * deviation) : 0;
}

}  // namespace keel::onednn

// What a norm makes of a variance and of a saved rstd, as scalars.
#pragma once

#include <cmath>

#include "src/ops/norm/norm.h"

namespace keel::onednn {

// 1 / s; s = sqrt(variance + eps), or sqrt(variance) + eps.
inline double rstd_of(const NormStatistic& statistic, double variance) {
  return statistic.eps_outside ? 1 / (std::sqrt(variance) + statistic.eps)
                               : 1 / std::sqrt(variance + statistic.eps);
}

// The factor r of the slope of dx: 1, or s / (s - eps) for an eps outside the root, which is taken
// as 0 where there is no deviation.
inline double slope_factor(const NormStatistic& statistic, double rstd) {
  if (!statistic.eps_outside) return 1;
  const double deviation = 1 / rstd - statistic.eps;
  return deviation > 0 ? 1 / (rstd * deviation) : 0;
}

}  // namespace keel::onednn

// The scalar part of a norm's statistic, after its sums are known.
#pragma once

#include <cmath>

#include "src/ops/norm/norm.h"

namespace keel::onednn {

// What a sum over n elements is divided by to give a variance.
inline double variance_count(const NormStatistic& statistic, std::int64_t n) {
  return double(n) - (statistic.unbiased ? 1 : 0);
}

// 1 / s; s = sqrt(variance + eps), or sqrt(variance) + eps.
inline double rstd_of(const NormStatistic& statistic, double variance) {
  return statistic.eps_outside ? 1 / (std::sqrt(variance) + statistic.eps)
                               : 1 / std::sqrt(variance + statistic.eps);
}

// (ds / dx) * s * N / (x - mean): 1, or s / (s - eps) for an eps outside the root and 0 when there
// is no deviation.
inline double slope_factor(const NormStatistic& statistic, double rstd) {
  if (!statistic.eps_outside) return 1;
  const double deviation = 1 / rstd - statistic.eps;
  return deviation > 0 ? 1 / (rstd * deviation) : 0;
}

}  // namespace keel::onednn

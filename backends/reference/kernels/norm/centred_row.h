// The statistics of one row of a centred row norm, in double.
#pragma once

#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/norm.h"

namespace keel::reference {

struct RowStatistics {
  double mean, rstd;
};

// The mean is taken relative to the first element, so that a constant row has exactly its value.
inline RowStatistics row_statistics(const Eigen::RowVectorXd& x, const NormStatistic& statistic) {
  const double mean = x[0] + (x.array() - x[0]).mean();
  const double variance =
      (x.array() - mean).matrix().squaredNorm() / variance_count(x.size(), statistic.unbiased);
  return {mean, statistic.eps_outside ? 1 / (std::sqrt(variance) + statistic.eps)
                                      : 1 / std::sqrt(variance + statistic.eps)};
}

// The factor r in the slope of dx: s / (s - eps) for eps outside the root; 0 on a constant row.
inline double outside_factor(double rstd, const NormStatistic& statistic) {
  if (!statistic.eps_outside) return 1;
  const double deviation = 1 / rstd - statistic.eps;
  return deviation > 0 ? 1 / (rstd * deviation) : 0;
}

}  // namespace keel::reference

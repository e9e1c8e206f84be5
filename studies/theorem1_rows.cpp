#include "studies/theorem1_rows.h"

#include <cmath>
#include <vector>

#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/detach_norm.h"
#include "src/ops/norm/layer_norm.h"
#include "studies/lab.h"

namespace keel::study {

std::span<const Detaching> detachings() {
  static const Detaching list[] = {{"detachnorm", kDetachNorm, false, false},
                                   {"layernorm_simple", kLayerNorm, true, true},
                                   {"detachmean", kDetachNorm, false, true},
                                   {"detachvariance", kDetachNorm, true, false},
                                   {"adanorm", kAdaNorm, true, true, 0.1}};
  return list;
}

RowMoments row_moments(const Detaching& detaching, double eps, const GradientRow& row) {
  std::vector<double> g(row.dy.begin(), row.dy.end()), xhat(g.size());
  const double centre = mean(row.x), s = std::sqrt(variance(row.x) + eps);
  for (std::size_t h = 0; h < g.size(); ++h) {
    xhat[h] = (row.x[h] - centre) / s;
    g[h] *= 1 - detaching.slope * xhat[h];
  }
  const double m = mean_product(g, xhat), q = mean_product(xhat, xhat);
  RowMoments r{mean(g), variance(g), s, mean(row.dx), variance(row.dx)};
  r.ratio = r.dx_variance * s * s / r.g_variance;
  const double claimed_mean = detaching.through_mean ? 0 : r.g_mean / s;
  const double taken = detaching.through_deviation ? (2 - q) * m * m : 0;
  r.mean_error = std::abs(r.dx_mean - claimed_mean) * s / std::sqrt(mean_product(g, g));
  r.variance_error = std::abs(r.ratio - (r.g_variance - taken) / r.g_variance);
  return r;
}

}  // namespace keel::study

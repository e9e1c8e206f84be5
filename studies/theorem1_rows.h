// Theorem 1 of Xu et al. 2019, row by row: how detaching the mean or the deviation changes mean and
// variance of the gradient. With g = dy (times phi for AdaNorm), s^2 = var(x) + eps,
// xhat = (x - mean) / s, m = mean(g xhat), q = mean(xhat^2):
//     mean(dx) = 0 if the gradient flows through the mean, else mean(g) / s
//     var(dx) = (var(g) - (2 - q) m^2) / s^2 if it flows through the deviation, else var(g) / s^2
// So var(dx) <= var(g) / s^2, with equality, for eps = 0, only where g is orthogonal to xhat.
#pragma once

#include <span>
#include <string>

#include "src/graph/op_info.h"

namespace keel::study {

struct Detaching {
  std::string norm;
  const OpInfo& op;
  bool through_mean, through_deviation;
  double slope = 0;  // k of AdaNorm

  std::string mean_claim() const { return through_mean ? "0" : "mean(g) / s"; }
  std::string variance_claim() const {
    return through_deviation ? "var(g) - (2 - q) m^2" : "var(g)";
  }
};

// The symbols of the tables.
inline constexpr const char* kRowSymbols =
    "xhat = (x - mean) / s, s^2 = var(x) + eps,\n"
    "g = dy, of adanorm dy (1 - k xhat), m = mean(g xhat), q = mean(xhat^2), "
    "ratio = var(dx) s^2 / var(g)";

// detachnorm, layernorm_simple, detachmean, detachvariance and adanorm.
std::span<const Detaching> detachings();

// One row as it came and went.
struct GradientRow {
  std::span<const double> x, dy, dx;
};

struct RowMoments {
  double g_mean = 0, g_variance = 0, s = 0, dx_mean = 0, dx_variance = 0;
  double ratio = 0;                           // var(dx) s^2 / var(g)
  double mean_error = 0, variance_error = 0;  // relative to rms(g) / s and var(g) / s^2
};
RowMoments row_moments(const Detaching& detaching, double eps, const GradientRow& row);

}  // namespace keel::study

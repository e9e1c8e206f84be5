// Lemma 2 of Shen et al. 2020 (eq. 7) and its form for BatchNorm (Santurkar et al. 2018): with s
// the divisor of a feature, xhat what gain multiplies, q = mean(xhat^2), over the B rows of the
// batch,
//     PN-V       |dx|^2 = gain^2 / s^2 (|dy|^2 - (2 - q) <dy, xhat>^2 / B)
//     BatchNorm  the same with <dy, 1>^2 / B taken off as well
// q = 1 for eps = 0. So a norm shrinks the gradient wherever gain <= s.
#include <algorithm>
#include <cmath>

#include "src/ops/norm/batch_norm.h"
#include "src/ops/norm/pn_v.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::int64_t kRows = 64, kFeatures = 256;

struct Norm {
  std::string name;
  bool centred;
};

struct Draws {
  Tensor x, dy;         // (rows, features)
  Tensor gain, unused;  // (features): the gain, and a running statistic that training only writes
};

Draws draw(std::uint64_t seed) {
  const auto feature_of = [](std::int64_t i) { return i % kFeatures; };
  return {spread(normal({kRows, kFeatures}, seed, "x"), seed, feature_of),
          normal({kRows, kFeatures}, seed, "dy"), normal({kFeatures}, seed, "gain"),
          Tensor(DType::kF64, {kFeatures})};
}

Layer layer_of(const Norm& norm, double eps, const Draws& draws) {
  return [&norm, &draws, eps](Graph& g, Value x) {
    const ops::NormAffine affine{g.constant(draws.gain.clone()), {}};
    const Value running = g.constant(draws.unused.clone());
    if (!norm.centred) return ops::pn_v(g, x, affine, {running, {}}, {.eps = eps});
    return ops::batch_norm(g, x, affine, {running, running}, {.eps = eps});
  };
}

FeatureGradient judge_feature(const Norm& norm, double eps, const Draws& draws, const Tensor& dx,
                              std::int64_t c) {
  std::vector<double> xhat = column(draws.x, c);
  const std::vector<double> dy = column(draws.dy, c), d = column(dx, c);
  const double centre = norm.centred ? mean(xhat) : 0, n = double(kRows);
  for (double& value : xhat) value -= centre;
  const double s = std::sqrt(mean_product(xhat, xhat) + eps), gain = std::abs(draws.gain.at(c));
  for (double& value : xhat) value /= s;
  const double q = mean_product(xhat, xhat), along = mean_product(dy, xhat);
  const double across = norm.centred ? mean(dy) : 0, size = n * mean_product(dy, dy);
  return {n * mean_product(d, d) * s * s / (gain * gain),
          size - n * ((2 - q) * along * along + across * across), size, gain / s};
}

void judge(Backend& backend, const Norm& norm, double eps, const Draws& draws,
           std::vector<FeatureGradient>& features) {
  const Tensor dx = pass(backend, layer_of(norm, eps, draws), draws.x, draws.dy).dx;
  for (std::int64_t c = 0; c < kFeatures; ++c) {
    features.push_back(judge_feature(norm, eps, draws, dx, c));
  }
}

}  // namespace

Result lemma2(const Options& options) {
  const Draws draws = draw(options.seed);
  Result result;
  Table table{fmt::format("{} features over {} rows", kFeatures, kRows),
              {{"norm", "eps", "error of |dx|^2", "gain <= s", "|dx| / |dy| there, largest",
                "elsewhere, largest"}}};
  for (const Norm& norm : {Norm{"PN-V", false}, Norm{"BatchNorm", true}}) {
    for (double eps : {0.0, 0.5}) {
      std::vector<FeatureGradient> features;
      judge(options.backend, norm, eps, draws, features);
      const FeatureWorst worst = worst_of(features);
      const auto count = std::ranges::count_if(
          features, [](const FeatureGradient& f) { return f.gain_over_s <= 1; });
      table.rows.push_back({norm.name, fmt::format("{}", eps), fmt::format("{:.1e}", worst.error),
                            fmt::format("{}", count), fmt::format("{:.4f}", worst.shrunk),
                            fmt::format("{:.4f}", worst.grown)});
      judge_features(norm.name, eps, worst, result);
    }
  }
  result.tables.push_back(std::move(table));
  return result;
}

}  // namespace keel::study

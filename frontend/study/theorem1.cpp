// Theorem 1 of Xu et al. 2019: what detaching the mean or the deviation of a row does to mean and
// variance of the gradient. With g = dy (times phi for AdaNorm), s^2 = var(x) + eps,
// xhat = (x - mean) / s, m = mean(g xhat), q = mean(xhat^2):
//     mean(dx) = 0 if the gradient flows through the mean, else mean(g) / s
//     var(dx) = (var(g) - (2 - q) m^2) / s^2 if it flows through the deviation, else var(g) / s^2
// so that var(dx) <= var(g) / s^2, with equality, for eps = 0, only where g is orthogonal to xhat.
#include <cmath>

#include "frontend/study/lab.h"
#include "frontend/study/list.h"

namespace keel::study {
namespace {

constexpr std::int64_t kDraws = 1000, kWidth = 512;
constexpr double kSlope = 0.1;  // k of AdaNorm

struct Variant {
  std::string norm;
  bool through_mean, through_deviation;
  bool adaptive = false;
};

const Variant kVariants[] = {{"detachnorm", false, false},
                             {"layernorm_simple", true, true},
                             {"detachmean", false, true},
                             {"detachvariance", true, false},
                             {"adanorm", true, true, true}};

struct Case {
  const Variant& variant;
  double eps;
};

struct Draws {
  Tensor x, g;  // (draws, width)
};

Draws draw(std::uint64_t seed) {
  const auto row_of = [](std::int64_t i) { return i / kWidth; };
  return {spread(normal({kDraws, kWidth}, seed, "x"), seed, row_of),
          spread(normal({kDraws, kWidth}, seed, "g"), seed + 1, row_of)};
}

struct Worst {
  double mean = 0, variance = 0;  // errors, relative to rms(g) / s and var(g) / s^2
  double ratio = 0;               // the largest var(dx) s^2 / var(g)
  double mean_ratio = 0;          // its mean over the draws
};

// What one draw adds to the worst.
void judge_row(const Case& c, const Draws& draws, const Tensor& dx, std::int64_t i, Worst& worst) {
  const std::span<const double> x = row(draws.x, i), d = row(dx, i);
  std::vector<double> g(row(draws.g, i).begin(), row(draws.g, i).end()), xhat(g.size());
  const double centre = mean(x), s = std::sqrt(variance(x) + c.eps);
  for (std::size_t h = 0; h < g.size(); ++h) {
    xhat[h] = (x[h] - centre) / s;
    if (c.variant.adaptive) g[h] *= 1 - kSlope * xhat[h];
  }
  const double m = mean_product(g, xhat), q = mean_product(xhat, xhat), spread = variance(g);
  const double claimed_mean = c.variant.through_mean ? 0 : mean(g) / s;
  const double taken = c.variant.through_deviation ? (2 - q) * m * m : 0;
  const double ratio = variance(d) * s * s / spread;
  take_largest(worst.mean, std::abs(mean(d) - claimed_mean) * s / std::sqrt(mean_product(g, g)));
  take_largest(worst.variance, std::abs(ratio - (spread - taken) / spread));
  take_largest(worst.ratio, ratio);
  worst.mean_ratio += ratio / double(kDraws);
}

Worst judge(Backend& backend, const Case& c, const Draws& draws) {
  const Layer layer = norm_layer(fmt::format("{}{{eps={}}}", c.variant.norm, c.eps));
  const Tensor dx = pass(backend, layer, draws.x, draws.g).dx;
  Worst worst;
  for (std::int64_t i = 0; i < kDraws; ++i) judge_row(c, draws, dx, i, worst);
  return worst;
}

void add_variants(Backend& backend, const Draws& draws, Result& result) {
  Table table{
      fmt::format("worst of {} draws of width {}; ratio = var(dx) s^2 / var(g)", kDraws, kWidth),
      {{"norm", "eps", "mean(dx)", "error", "var(dx) s^2", "error", "largest ratio",
        "mean ratio"}}};
  for (double eps : {0.0, 0.5}) {
    for (const Variant& v : kVariants) {
      const Worst worst = judge(backend, {v, eps}, draws);
      const std::string mean_claim = v.through_mean ? "0" : "mean(g) / s";
      const std::string variance_claim = v.through_deviation ? "var(g) - (2 - q) m^2" : "var(g)";
      table.rows.push_back(
          {v.norm, fmt::format("{}", eps), mean_claim, fmt::format("{:.1e}", worst.mean),
           variance_claim, fmt::format("{:.1e}", worst.variance),
           fmt::format("{:.6f}", worst.ratio), fmt::format("{:.6f}", worst.mean_ratio)});
      const std::string who = fmt::format("{}, eps {}: ", v.norm, eps);
      result.at_most(who + "mean(dx) is " + mean_claim, worst.mean, kRounding);
      result.at_most(who + "var(dx) s^2 is " + variance_claim, worst.variance, kRounding);
      result.at_most(who + "var(dx) s^2 / var(g) is at most 1", worst.ratio, 1 + kRounding);
    }
  }
  result.tables.push_back(std::move(table));
}

// The two ends of the bound: g orthogonal to xhat, and g along it.
void add_ends(Backend& backend, const Draws& draws, Result& result) {
  const Case simple{kVariants[1], 0};
  const Tensor y = pass(backend, norm_layer("layernorm_simple{eps=0}"), draws.x, draws.g).y;
  const auto without_y = [&](double value, std::int64_t i) {
    const std::int64_t r = i / kWidth;
    return value - y.at(i) * mean_product(row(y, r), row(draws.g, r));
  };
  const Worst across = judge(backend, simple, {draws.x.clone(), mapped(draws.g, without_y)});
  const Worst along = judge(backend, simple, {draws.x.clone(), y.clone()});
  result.near("layernorm_simple: the ratio is 1 where g is orthogonal to xhat", across.mean_ratio,
              1, kRounding);
  result.at_most("layernorm_simple: the ratio is 0 where g is along xhat", along.ratio, kRounding);
}

}  // namespace

Result theorem1(const Options& options) {
  const Draws draws = draw(options.seed);
  Result result;
  add_variants(options.backend, draws, result);
  add_ends(options.backend, draws, result);
  return result;
}

}  // namespace keel::study

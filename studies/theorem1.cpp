// Theorem 1 of Xu et al. 2019 on drawn rows (theorem1_rows.h says what it claims).
#include <cmath>

#include "studies/lab.h"
#include "studies/list.h"
#include "studies/theorem1_rows.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr std::int64_t kDraws = 1000, kWidth = 512;

struct Case {
  const Detaching& detaching;
  double eps;
};

struct RowDraws {
  Tensor x, g;  // (draws, width)
};

RowDraws draw_rows(std::uint64_t seed) {
  const auto row_of = [](std::int64_t i) { return i / kWidth; };
  return {spread(normal({kDraws, kWidth}, seed, "x"), seed, row_of),
          spread(normal({kDraws, kWidth}, seed, "g"), seed + 1, row_of)};
}

struct Worst : RowWorst {
  double mean_ratio = 0;
};

Worst judge(Backend& backend, const Case& c, const RowDraws& draws) {
  const Layer layer = norm_layer(fmt::format("{}{{eps={}}}", c.detaching.norm, c.eps));
  const Tensor dx = pass(backend, layer, draws.x, draws.g).dx;
  Worst worst;
  for (std::int64_t i = 0; i < kDraws; ++i) {
    const RowMoments r =
        row_moments(c.detaching, c.eps, {row(draws.x, i), row(draws.g, i), row(dx, i)});
    take_largest(worst.mean, r.mean_error);
    take_largest(worst.variance, r.variance_error);
    take_largest(worst.ratio, r.ratio);
    worst.mean_ratio += r.ratio / double(kDraws);
  }
  return worst;
}

void add_variants(Backend& backend, const RowDraws& draws, Result& result) {
  Table table{fmt::format("worst of {} draws of width {}; {}", kDraws, kWidth, kRowSymbols),
              {{"norm", "eps", "mean(dx)", "mean error", "var(dx) s^2", "variance error",
                "largest ratio", "mean ratio"}}};
  for (double eps : {0.0, 0.5}) {
    for (const Detaching& v : detachings()) {
      const Worst worst = judge(backend, {v, eps}, draws);
      table.rows.push_back(
          {v.norm, fmt::format("{}", eps), v.mean_claim(), fmt::format("{:.1e}", worst.mean),
           v.variance_claim(), fmt::format("{:.1e}", worst.variance),
           fmt::format("{:.6f}", worst.ratio), fmt::format("{:.6f}", worst.mean_ratio)});
      judge_rows(fmt::format("{}, eps {}: ", v.norm, eps), v, worst, result);
    }
  }
  result.tables.push_back(std::move(table));
}

// The two ends of the bound: g orthogonal to xhat, and g along it.
void add_ends(Backend& backend, const RowDraws& draws, Result& result) {
  const Case simple{detachings()[1], 0};
  const Tensor y = pass(backend, norm_layer("layernorm_simple{eps=0}"), draws.x, draws.g).y;
  const auto without_y = [&](double value, std::int64_t i) {
    const std::int64_t r = i / kWidth;
    return value - y.at(i) * mean_product(row(y, r), row(draws.g, r));
  };
  const Worst across = judge(backend, simple, {draws.x.clone(), mapped(draws.g, without_y)});
  const Worst along = judge(backend, simple, {draws.x.clone(), y.clone()});
  judge_ends(across.mean_ratio, along.ratio, result);
}

}  // namespace

Result theorem1(const Options& options) {
  const RowDraws draws = draw_rows(options.seed);
  Result result;
  add_variants(options.backend, draws, result);
  add_ends(options.backend, draws, result);
  return result;
}

}  // namespace keel::study

// Made-up numbers for what Shen et al. 2020 show of norms: just within bounds, and just beyond.
#include <doctest/doctest.h>

#include <algorithm>

#include "studies/verdicts.h"
#include "tests/studies/verdict_case.h"

namespace keel::study {
namespace {

// 201 values whose median is 1 and whose 99th percentile is as given.
std::vector<double> spread_to(double p99) {
  std::vector<double> values(201, 1);
  std::fill_n(values.begin(), 3, p99);
  return values;
}

VerdictCase outlier_case() {
  using N = FigureNumbers;
  const N good{"dist_mu", FigureSeeds(3, spread_to(4.1)), FigureSeeds(3, spread_to(4))};
  return verdict_case<N>("statistics", good, judge_outliers,
                         {{"p99 / median of dist_mu, translation - cifar_resnet20",
                           [](N& n) { n.text[1] = spread_to(3.9); }}});
}

VerdictCase distance_case() {
  using N = FigureNumbers;
  const N good{"dist_mu", FigureSeeds(3, {0, 10.1, 99}), FigureSeeds(3, {0, 1, 5})};
  return verdict_case<N>("statistics", good, judge_distances,
                         {{"log10 of the medians of dist_mu, translation / cifar_resnet20",
                           [](N& n) { n.text[2][1] = 9.9; }}});
}

VerdictCase quadratic_case() {
  using N = QuadraticNumbers;
  const N good{"pn_v",
               "batchnorm",
               FigureSeeds(3, {0, 1, 9}),
               FigureSeeds(3, {0, 1.01, 2}),
               FigureSeeds(3, spread_to(4)),
               FigureSeeds(3, spread_to(4.1))};
  return verdict_case<N>(
      "statistics", good, judge_quadratic,
      {{"dist_square, batchnorm / pn_v", [](N& n) { n.batch_distance[0][1] = 0.99; }},
       {"gnorm_square, batchnorm - pn_v", [](N& n) { n.gradient[1] = spread_to(4.3); }}});
}

VerdictCase growing_case() {
  using N = FigureParts;
  return verdict_case<N>(
      "statistics", {"dist_mu", FigureSeeds(3, {0, 1, 9}), FigureSeeds(3, {0, 1.01, 2})},
      judge_growing, {{"log10 of the medians of dist_mu, last third / second", [](N& n) {
                         n.after[1][1] = 0.99;
                       }}});
}

VerdictCase calming_case() {
  using N = FigureParts;
  return verdict_case<N>("statistics",
                         {"dist_mu", FigureSeeds(3, spread_to(4.1)), FigureSeeds(3, spread_to(4))},
                         judge_calming, {{"p99 / median of dist_mu, second third - last", [](N& n) {
                                            n.after[0] = spread_to(4.3);
                                          }}});
}

VerdictCase share_case() {
  using N = std::vector<double>;
  N ratios(100, 1);
  std::fill_n(ratios.begin(), 4, 1.01);
  return verdict_case<N>("figure7", ratios,
                         [](const N& n, Result& r) { judge_shares("pn_v", false, n, r); },
                         {{"share of features", [](N& n) { n[4] = 1.01; }}});
}

VerdictCase seed_share_case() {
  return verdict_case<ShareSeeds>(
      "figure7", {"translation", "pn_v{eps=1e-5}", false, {0.96, 0.96, 0.96}}, judge_share_seeds,
      {{"share of features with |gain| <= psi, less 0.95",
        [](ShareSeeds& n) { n.shares[1] = 0.93; }}});
}

VerdictCase real_share_case() {
  return verdict_case<ShareSeeds>("figure7", {"translation", "pn_v", true, {1, 1, 1}},
                                  judge_share_seeds,
                                  {{"share of features with |gain| <= psi, the least of the seeds",
                                    [](ShareSeeds& n) { n.shares[1] = 0.999; }}});
}

VerdictCase margin_case() {
  return verdict_case<MarginNumbers>(
      "batch-size", {"bleu of a above b's", true, {0.1, 0.1, 0.1}}, judge_margin,
      {{"bleu of a above b's", [](MarginNumbers& n) { n.margins[1] = -0.1; }}});
}

VerdictCase area_case() {
  using N = AreaNumbers;
  return verdict_case<N>("singular-values", {"area of a - b's", true, {0.1, 0.1, 0.1}}, judge_areas,
                         {{"area of a - b's", [](N& n) { n.differences[2] = -0.1; }}});
}

TEST_CASE("studies: outliers are the 99th percentile by the median") {
  CHECK(outlier_ratio(spread_to(5)) == 5);
  std::vector<double> values;
  for (int i = 0; i <= 100; ++i) values.push_back(i);
  CHECK(outlier_ratio(values) == doctest::Approx(99.0 / 50));
}

}  // namespace

std::vector<VerdictCase> shen_verdict_cases() {
  return {outlier_case(), distance_case(),   quadratic_case(),  growing_case(), calming_case(),
          share_case(),   seed_share_case(), real_share_case(), margin_case(),  area_case()};
}

}  // namespace keel::study

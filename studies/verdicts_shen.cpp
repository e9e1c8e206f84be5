// The verdicts on what Shen et al. 2020 show of norms in trained networks.
#include <algorithm>
#include <cmath>

#include "frontend/report/spread.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr double kShare = 0.95;  // of features with |gain| <= psi, on synthetic data

double outliers_above(const std::vector<double>& a, const std::vector<double>& b) {
  return outlier_ratio(a) - outlier_ratio(b);
}

// How a figure of one network compares with that of another, seed by seed.
template <class Compare>
SeedValues compared(const FigureSeeds& a, const FigureSeeds& b, const Compare& compare) {
  SeedValues values(a.size());
  std::ranges::transform(a, b, values.begin(), compare);
  return values;
}

}  // namespace

double orders_above(const std::vector<double>& a, const std::vector<double>& b) {
  return std::log10(quantile(a, 0.5) / quantile(b, 0.5));
}

double share_at_most_one(std::span<const double> ratios) {
  return double(std::ranges::count_if(ratios, [](double r) { return r <= 1; })) /
         double(ratios.size());
}

void judge_shares(const std::string& who, bool is_control, std::span<const double> ratios,
                  Result& result) {
  const std::string claim = who + ": share of features with |gain| <= psi";
  const double share = share_at_most_one(ratios);
  if (is_control) {
    result.not_judged(claim, share, "a control: the scaling sets psi near 1");
  } else {
    result.above(claim, share, kShare);
  }
}

void judge_share_seeds(const ShareSeeds& of, Result& result) {
  const std::string who =
      fmt::format("{}, {}: share of features with |gain| <= psi", of.task, of.norm);
  const double least = std::ranges::min(of.shares);
  if (of.task != "translation" || name_of_norm(of.norm) != "pn_v") {
    return result.not_judged(who, mean_of(of.shares),
                             "stated of PN-V in a Transformer for translation");
  }
  if (of.is_of_real_data) {
    if (of.shares.size() < 3) return result.not_judged(who, least, "needs 3 seeds");
    return result.near(who + ", the least of the seeds", least, 1, 0);
  }
  SeedValues above = of.shares;
  for (double& share : above) share -= kShare;
  result.above_zero_over_seeds(fmt::format("{}, less {:g}", who, kShare), above);
}

double outlier_ratio(const std::vector<double>& values) {
  return quantile(values, 0.99) / quantile(values, 0.5);
}

void judge_outliers(const FigureNumbers& of, Result& result) {
  result.above_zero_over_seeds(
      fmt::format("p99 / median of {}, translation - cifar_resnet20", of.figure),
      compared(of.text, of.images, outliers_above));
}

void judge_distances(const FigureNumbers& of, Result& result) {
  SeedValues orders = compared(of.text, of.images, orders_above);
  for (double& order : orders) order -= 1;
  result.above_zero_over_seeds(
      fmt::format("log10 of the medians of {}, translation / cifar_resnet20, less 1", of.figure),
      orders);
}

void judge_growing(const FigureParts& text, Result& result) {
  result.above_zero_over_seeds(
      fmt::format("translation: log10 of the medians of {}, last third / second", text.figure),
      compared(text.after, text.before, orders_above));
}

void judge_calming(const FigureParts& images, Result& result) {
  result.above_zero_over_seeds(
      fmt::format("cifar_resnet20: p99 / median of {}, second third - last", images.figure),
      compared(images.before, images.after, outliers_above));
}

void judge_quadratic(const QuadraticNumbers& of, Result& result) {
  result.above_zero_over_seeds(
      fmt::format("translation: log10 of the medians of dist_square, {} / {}", of.batchnorm,
                  of.norm),
      compared(of.batch_distance, of.distance, orders_above));
  if (of.gradient.empty()) return;
  result.above_zero_over_seeds(
      fmt::format("translation: p99 / median of gnorm_square, {} - {}", of.batchnorm, of.norm),
      compared(of.batch_gradient, of.gradient, outliers_above));
}

void judge_growth(const std::string& who, const SeedValues& largest, const SeedValues& smallest,
                  Result& result) {
  result.not_judged(who + ": loss at the smallest batch - at the largest",
                    report::median_of(differences(smallest, largest)),
                    "the source says of which norm it grows, and not by how much");
}

void judge_margin(const MarginNumbers& of, Result& result) {
  if (of.are_equal) {
    return result.not_judged(of.claim, mean_of(of.margins),
                             "the source has them equal, which no test shows");
  }
  if (of.is_of_source) return result.above_zero_over_seeds(of.claim, of.margins);
  result.not_judged(of.claim, mean_of(of.margins), "stated of runs on IWSLT14, trained to the end");
}

void judge_areas(const AreaNumbers& of, Result& result) {
  if (of.is_of_source) return result.above_zero_over_seeds(of.claim, of.differences);
  result.not_judged(of.claim, mean_of(of.differences),
                    "stated of powernorm beside layernorm in runs on WMT14, trained to the end");
}

}  // namespace keel::study

// The verdicts of studies that train networks, large and small.
#include <algorithm>
#include <cmath>

#include "frontend/report/spread.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

constexpr double kShare = 0.95;          // of features with |gain| <= psi
constexpr double kNearBatchnorm = 0.25;  // of the way from it to no norm
constexpr double kLandscapeBound = 10;   // an order of magnitude

double best_cost(std::span<const CostPoint> curve) {
  return std::ranges::min(curve, {}, &CostPoint::cost).cost;
}

// Updates until the cost is as low as this, between two points along a line; infinity when it never
// is.
double updates_until(std::span<const CostPoint> curve, double cost) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].cost > cost) continue;
    if (i == 0) return curve[i].step;
    const double part = (curve[i - 1].cost - cost) / (curve[i - 1].cost - curve[i].cost);
    return std::lerp(curve[i - 1].step, curve[i].step, part);
  }
  return INFINITY;
}

// The largest |a - b| of a seed.
double farthest(const SeedValues& a, const SeedValues& b) {
  const auto [low, high] = std::ranges::minmax(differences(a, b));
  return std::max(high, -low);
}

// The least a - b of a seed.
double least_gap(const SeedValues& a, const SeedValues& b) {
  return std::ranges::min(differences(a, b));
}

}  // namespace

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

double speedup(std::span<const CostPoint> first, std::span<const CostPoint> other) {
  const double goal = best_cost(first);
  return updates_until(first, goal) / updates_until(other, goal);
}

void judge_speedup(const SpeedupNumbers& of, Result& result) {
  const std::string claim =
      fmt::format("{}: updates of {} to its best result / {}'s, the least of all seeds", of.task,
                  of.first, of.norm);
  const double least = std::ranges::min(of.found);
  if (of.first == "none" && of.task == "mnist_mlp") {
    result.above(claim, least, 1);
  } else {
    result.not_judged(claim, least, "stated of none and a norm, mnist_mlp");
  }
}

void judge_shift(const std::string& task, const ShiftNumbers& none, const ShiftNumbers& batch,
                 Result& result) {
  // No smaller a shift, and better trained all the same.
  const std::pair<const char*, double> found[] = {
      {"|G - G'|, batchnorm - none", batch.distance - none.distance},
      {"cos(G, G'), none - batchnorm", none.cosine - batch.cosine},
      {"last train loss, none - batchnorm", none.loss - batch.loss}};
  for (const auto& [claim, value] : found) {
    if (task == "mnist_mlp") {
      result.above(claim, value, 0);
    } else {
      result.not_judged(claim, value, "judged of mnist_mlp");
    }
  }
}

void judge_noise(const NoisyRuns& runs, Result& result) {
  const auto& [none, batch, noisy] = runs;
  const double gained = none.loss - batch.loss;
  result.above("last train loss, none - batchnorm", gained, 0);
  result.at_most("(noisybatchnorm - batchnorm) / (none - batchnorm), of the last train loss",
                 (noisy.loss - batch.loss) / gained, kNearBatchnorm);
  result.above("moved, noisybatchnorm - none", noisy.moved - none.moved, 0);
  result.above("stretched, noisybatchnorm - batchnorm", noisy.stretched - batch.stretched, 0);
}

double outlier_ratio(const std::vector<double>& values) {
  return quantile(values, 0.99) / quantile(values, 0.5);
}

void judge_outliers(const std::string& figure, const std::vector<double>& text,
                    const std::vector<double>& images, Result& result) {
  result.above(fmt::format("p99 / median of {}, text_classifier - mnist_mlp", figure),
               outlier_ratio(text) - outlier_ratio(images), 0);
}

void judge_quadratic(const std::vector<double>& pn_v, const std::vector<double>& batch,
                     Result& result) {
  result.not_judged("text_classifier: dist_square of pn_v / batchnorm's, medians",
                    quantile(pn_v, 0.5) / quantile(batch, 0.5),
                    "< 1 was seen on translation; small data may differ");
}

void judge_landscape(const std::string& norm, bool has_task, const LandscapeFigures& none,
                     const LandscapeFigures& of, Result& result) {
  for (std::size_t i = 0; i < none.size(); ++i) {
    const std::string claim = fmt::format("{} of none / {}'s", none[i].first, norm);
    const double ratio = quantile(none[i].second, 0.5) / quantile(of[i].second, 0.5);
    if (has_task) {
      result.not_judged(claim, ratio, "stated of deep networks: without --task");
    } else {
      result.above(claim, ratio, kLandscapeBound);
    }
  }
}

void judge_topics(const std::string& norm, double before, double after, Result& result) {
  result.above(norm + ": training tells topics apart, in points of accuracy", after - before, 0);
}

void judge_growth(const std::string& who, const SeedValues& largest, const SeedValues& smallest,
                  Result& result) {
  result.not_judged(who + ": loss at the smallest batch - at the largest",
                    report::median_of(differences(smallest, largest)),
                    "stated of IWSLT14 trained to the end");
}

void judge_areas(const std::string& claim, const SeedValues& of, const SeedValues& first,
                 Result& result) {
  double mean = 0;
  for (std::size_t k = 0; k < of.size(); ++k) mean += (of[k] - first[k]) / double(of.size());
  result.not_judged(claim, mean, "stated of a Transformer trained to the end on WMT14");
}

// For every seed: the measured value is the worst.
void judge_batch_losses(const BatchLosses& of, Result& result) {
  result.at_most("batch 128: |loss(layernorm) - loss(batchnorm)|",
                 farthest(of.large_layernorm, of.large_batchnorm), 0.1);
  result.above("batch 4: loss(batchnorm) - loss(layernorm)",
               least_gap(of.small_batchnorm, of.small_layernorm), 0.2);
  result.at_most("batch 4: |loss(layernorm) - loss(none)|",
                 farthest(of.small_layernorm, of.small_none), 0.1);
}

// Every bound must hold for every seed: the measured value is the worst of them.
void judge_detached(const ValuesByNorm& losses, Result& result) {
  const std::string simple = "layernorm_simple";
  result.above("loss(none)", std::ranges::min(losses.at("none")), 3);
  for (const std::string norm : {"layernorm", "detachmean", "adanorm{C=1,k=0.1}"}) {
    result.at_most(fmt::format("|loss({}) - loss({})|", norm, simple),
                   farthest(losses.at(norm), losses.at(simple)), 0.06);
  }
  for (const std::string norm : {"detachnorm", "detachvariance"}) {
    result.above(fmt::format("loss({}) - loss({})", norm, simple),
                 least_gap(losses.at(norm), losses.at(simple)), 0.15);
  }
  result.at_most("|loss(detachnorm) - loss(detachvariance)|",
                 farthest(losses.at("detachnorm"), losses.at("detachvariance")), 0.06);
}

// The test losses of BatchNorm and PN-V hang on the last ten batches, which their running
// statistics remember: within a run they move by more than they differ. So their order is that of
// the means over the seeds that the source reports, no fewer; that of their accuracies, and every
// other bound, holds for each seed, and the measured value is the worst.
void judge_sentences(const SentenceNumbers& of, Result& result) {
  const SeedValues &batch_norm = of.loss.at("batchnorm"), &layer_norm = of.loss.at("layernorm");
  result.above("loss(batchnorm) - loss(layernorm)", least_gap(batch_norm, layer_norm), 0.25);
  result.above_on_average("loss(batchnorm) - loss(pn_v), mean over the seeds",
                          differences(batch_norm, of.loss.at("pn_v")), 0, kSentenceSeeds);
  result.above("accuracy(pn_v) - accuracy(batchnorm)",
               least_gap(of.accuracy.at("pn_v"), of.accuracy.at("batchnorm")), 0);
  for (const std::string norm : {"powernorm paper", "powernorm release"}) {
    const std::string scaled = norm + " + ls";
    const SeedValues& loss = of.loss.at(scaled);
    result.at_most(fmt::format("|loss({}) - loss(layernorm)|", scaled), farthest(loss, layer_norm),
                   0.08);
    result.above(fmt::format("loss({}) - loss({})", norm, scaled),
                 least_gap(of.loss.at(norm), loss), 0.3);
  }
  result.above("p99 / median of the distances of var, uneven scale",
               of.uneven.p99 / of.uneven.median, 5);
  result.at_most("p99 / median of the distances of var, one scale", of.even.p99 / of.even.median,
                 3);
}

}  // namespace keel::study

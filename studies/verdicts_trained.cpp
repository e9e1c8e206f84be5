// The verdicts of studies that train networks, but for those of Shen et al. 2020 on norms in them.
#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "frontend/report/spread.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

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

// A claim of Xu et al. 2019 about the losses of two norms, the data by which a figure shows it, and
// the tasks of which it is stated. Figure 3 shows the Penn Treebank, too, in whose place runs have
// another treebank.
struct CurveClaim {
  std::string_view higher, lower;
  bool of_valid;
  const char* shown;
  std::array<std::string_view, 2> data;  // as runs name them
  std::string_view tasks;
};
constexpr std::string_view kXuTasks =
    "translation char_lm text_classifier mnist_cnn dependency_parser";
constexpr CurveClaim kCurveClaims[] = {
    {"layernorm_simple", "layernorm", false, "IWSLT15 and enwik8", {"iwslt15", "enwik8"}, kXuTasks},
    {"layernorm", "layernorm_simple", true, "IWSLT15 and enwik8", {"iwslt15", "enwik8"}, kXuTasks},
    {"detachnorm",
     "layernorm_simple",
     false,
     "IWSLT14 and IWSLT15",
     {"iwslt14", "iwslt15"},
     "translation"},
    {"detachnorm",
     "layernorm_simple",
     true,
     "IWSLT14 and IWSLT15",
     {"iwslt14", "iwslt15"},
     "translation"},
    {"adanorm", "layernorm", false, "IWSLT14, IWSLT15 and PTB", {"iwslt14", "iwslt15"}, kXuTasks},
    {"layernorm", "adanorm", true, "IWSLT14, IWSLT15 and PTB", {"iwslt14", "iwslt15"}, kXuTasks}};

// "iwslt15", or of data that the figure does not have "rt, where the figure has IWSLT15".
std::string data_text(const CurveClaim& claim, const std::string& data) {
  const bool is_shown = std::ranges::any_of(
      claim.data, [&](std::string_view name) { return data.find(name) != std::string::npos; });
  return is_shown ? data : fmt::format("{}, where the figure has {}", data, claim.shown);
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

// The claims of Santurkar et al. 2018 are judged for their networks, and for the small one on
// digits.
bool is_of_source(const std::string& task) {
  return task == "cifar_vgg" || task == "deep_linear" || task == "mnist_mlp";
}
constexpr const char* kSourceNetworks = "judged of cifar_vgg, deep_linear and mnist_mlp";

// One of their claims: the values, one a seed, are above 0.
void add_over_seeds(const std::string& task, std::string claim, std::span<const double> values,
                    Result& result) {
  if (is_of_source(task)) return result.above_zero_over_seeds(std::move(claim), values);
  result.not_judged(std::move(claim), mean_of(values), kSourceNetworks);
}

}  // namespace

double speedup(std::span<const CostPoint> first, std::span<const CostPoint> other) {
  const double goal = best_cost(first);
  return updates_until(first, goal) / updates_until(other, goal);
}

void judge_speedup(const SpeedupNumbers& of, Result& result) {
  constexpr std::array kTasks{"order_embeddings", "attentive_reader", "skip_thoughts",
                              "handwriting", "draw"};
  const std::string claim = fmt::format("{}: updates of {} to its best result / {}'s, less 1",
                                        of.task, of.first, of.norm);
  SeedValues gains = of.found;
  for (double& gain : gains) gain -= 1;
  const bool is_layer_norm = name_of_norm(of.norm) == "layernorm";
  const bool is_stated = of.task == "mnist_mlp" ||
                         (is_layer_norm && std::ranges::find(kTasks, of.task) != kTasks.end());
  if (of.first == "none" && is_stated) return result.above_zero_over_seeds(claim, gains);
  result.not_judged(claim, mean_of(gains),
                    "stated of none beside layernorm on the tasks of Ba et al. 2016");
}

void judge_curves(const CurvePair& of, Result& result) {
  const auto name = [](const LastLosses& l) { return name_of_norm(l.norm); };
  for (const CurveClaim& claim : kCurveClaims) {
    const bool is_turned = name(of.b) == claim.higher;
    const LastLosses &higher = is_turned ? of.b : of.a, &lower = is_turned ? of.a : of.b;
    if (name(higher) != claim.higher || name(lower) != claim.lower) continue;
    const auto losses = claim.of_valid ? &LastLosses::valid : &LastLosses::train;
    const SeedValues gaps = differences(higher.*losses, lower.*losses);
    const std::string text = fmt::format(
        "last {} loss of {} - {}'s", claim.of_valid ? "valid" : "train", higher.norm, lower.norm);
    if (of.data.empty()) {
      result.not_judged(fmt::format("{}: {}", of.task, text), mean_of(gaps),
                        std::string("stated of finished runs on real data: ") + claim.shown);
    } else if (claim.tasks.find(of.task) == std::string_view::npos) {
      result.not_judged(fmt::format("{} on {}: {}", of.task, of.data, text), mean_of(gaps),
                        fmt::format("stated of {}", claim.tasks));
    } else {
      result.above_zero_over_seeds(
          fmt::format("{} on {}: {}", of.task, data_text(claim, of.data), text), gaps);
    }
  }
}

void judge_best(const BestCosts& of, Result& result) {
  constexpr std::array kBatchNorms{"batchnorm", "recurrentbatchnorm", "sequencebatchnorm"};
  const bool is_batch_norm =
      std::ranges::find(kBatchNorms, name_of_norm(of.norm)) != kBatchNorms.end();
  const bool is_stated = (of.norm == "none" && of.task == "order_embeddings") ||
                         ((of.norm == "none" || is_batch_norm) && of.task == "attentive_reader");
  if (!is_stated) return;
  result.above_zero_over_seeds(
      fmt::format("{}: by how much layernorm's best result is better than {}'s", of.task, of.norm),
      differences(of.other, of.layernorm));
}

void judge_boundary(const std::string& who, std::span<const std::vector<UnitParts>> seeds,
                    Result& result) {
  SeedValues on, rare, orders;
  for (const std::vector<UnitParts>& layers : seeds) {
    SeedValues more_on, more_rare, factors;
    for (const auto& [boundary, inner] : layers) {
      more_on.push_back(inner.on - boundary.on);
      more_rare.push_back(boundary.rare - inner.rare);
      factors.push_back(std::log10(inner.variance / boundary.variance));
    }
    on.push_back(mean_of(more_on));
    rare.push_back(mean_of(more_rare));
    orders.push_back(mean_of(factors));
  }
  result.above_zero_over_seeds(who + ": how often inner units are on, less boundary ones", on);
  result.above_zero_over_seeds(who + ": the share of units rarely on, boundary less inner", rare);
  result.above_zero_over_seeds(who + ": log10 of the variance of inner units / of boundary ones",
                               orders);
}

void judge_shift(const std::string& task, ShiftSeeds none, ShiftSeeds batch, Result& result) {
  std::vector<double> distance, cosine, loss;
  for (std::size_t i = 0; i < none.size(); ++i) {
    distance.push_back(batch[i].distance - none[i].distance);
    cosine.push_back(std::abs(none[i].cosine) - std::abs(batch[i].cosine));
    loss.push_back(none[i].loss - batch[i].loss);
  }
  // No smaller a shift, and better trained all the same.
  const std::string shift = "|G - G'|, batchnorm - none", angle = "|cos(G, G')|, none - batchnorm";
  if (is_of_source(task)) {
    result.not_below_zero_over_seeds(shift, distance);
  } else {
    result.not_judged(shift, mean_of(distance), kSourceNetworks);
  }
  if (task == "deep_linear") {
    result.above_zero_over_seeds(angle, cosine);
  } else {
    result.not_judged(angle, mean_of(cosine), "stated of deep_linear");
  }
  add_over_seeds(task, "last train loss, none - batchnorm", loss, result);
}

void judge_noise(const std::string& task, const NoisyRuns& runs, Result& result) {
  SeedValues gained, near, moved, moved_more, stretched, stretched_more;
  for (std::size_t i = 0; i < runs.none.size(); ++i) {
    const NoisyNumbers &none = runs.none[i], &batch = runs.batch[i], &noisy = runs.noisy[i];
    gained.push_back(none.loss - batch.loss);
    near.push_back(kNearBatchnorm * gained.back() - (noisy.loss - batch.loss));
    moved.push_back(noisy.moved - none.moved);
    moved_more.push_back(noisy.moved - batch.moved);
    stretched.push_back(noisy.stretched - none.stretched);
    stretched_more.push_back(noisy.stretched - batch.stretched);
  }
  add_over_seeds(task, "last train loss, none - batchnorm", gained, result);
  add_over_seeds(task, "of that loss, 0.25 (none - batchnorm) - (noisybatchnorm - batchnorm)", near,
                 result);
  add_over_seeds(task, "moved, noisybatchnorm - none", moved, result);
  add_over_seeds(task, "moved, noisybatchnorm - batchnorm", moved_more, result);
  add_over_seeds(task, "stretched, noisybatchnorm - none", stretched, result);
  add_over_seeds(task, "stretched, noisybatchnorm - batchnorm", stretched_more, result);
}

void judge_landscape(const LandscapeNetworks& what, std::span<const LandscapeFigures> none,
                     std::span<const LandscapeFigures> of, Result& result) {
  for (std::size_t f = 0; f < none.front().size(); ++f) {
    const std::string names = fmt::format("{} of none / {}'s", none.front()[f].first, what.norm);
    std::vector<double> orders;
    for (std::size_t i = 0; i < none.size(); ++i) {
      orders.push_back(orders_above(none[i][f].second, of[i][f].second));
    }
    if (what.task.empty()) {
      result.above(names, std::pow(10, std::ranges::min(orders)), kLandscapeBound);
    } else {
      add_over_seeds(what.task, "log10 of " + names, orders, result);
    }
  }
}

void judge_topics(const std::string& norm, const SeedValues& gains, Result& result) {
  result.above_zero_over_seeds(norm + ": training tells topics apart, in points of accuracy",
                               gains);
}

void judge_transfer(const TransferNumbers& of, Result& result) {
  const std::string claim = of.task + ": by how much layernorm is better than none";
  if (of.is_of_runs) return result.above_zero_over_seeds(claim, of.better);
  result.not_judged(claim, mean_of(of.better), "stated of trainings on novels: --run");
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

void judge_placement(const PlacementNumbers& of, Result& result) {
  result.above_zero_over_seeds("loss(batchnorm after the ReLU) - loss(batchnorm before it)",
                               differences(of.after_loss, of.before_loss));
  result.above_zero_over_seeds("the same of the test error, in points",
                               differences(of.after_error, of.before_error));
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

void judge_deeper(const LossesByDepth& losses, Result& result) {
  const auto gains = [&](int blocks, const std::string& norm) {
    const ValuesByNorm& of = losses.at(blocks);
    return differences(of.at(norm), of.at("layernorm_simple"));
  };
  const int shallow = losses.begin()->first, deep = losses.rbegin()->first;
  const SeedValues by_variance = gains(deep, "detachvariance");
  result.above_zero_over_seeds(
      fmt::format("loss(detachvariance) - loss(layernorm_simple), {} blocks less {}", deep,
                  shallow),
      differences(by_variance, gains(shallow, "detachvariance")));
  result.above_zero_over_seeds(
      fmt::format("loss(detachvariance) - loss(detachmean), {} blocks", deep),
      differences(by_variance, gains(deep, "detachmean")));
}

// Chebyshev's bound of a row bounds a share of all rows; the one-sided one is k^2 / (1 + k^2).
void judge_trained_signs(int width, double k, std::span<const TrainedSigns> seeds, Result& result) {
  double beyond = 0, turned = 0;
  for (const TrainedSigns& s : seeds) {
    beyond = std::max(beyond, s.beyond / s.numbers);
    turned = std::max(turned, s.turned / s.numbers);
  }
  const std::string who = fmt::format("width {}: the share of ", width);
  result.at_most(who + "numbers with |xhat| >= 1 / k", beyond, k * k);
  result.at_most(who + "signs that AdaNorm turns", turned, k * k / (1 + k * k));
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
  result.seeds = 1;  // the distances are those of the first seed
  result.above("p99 / median of the distances of var, uneven scale",
               of.uneven.p99 / of.uneven.median, 5);
  result.at_most("p99 / median of the distances of var, one scale", of.even.p99 / of.even.median,
                 3);
}

}  // namespace keel::study

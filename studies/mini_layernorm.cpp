// The small counterpart of Xu et al. 2019, tables 1 to 4: which part of LayerNorm's backward helps;
// whether the derivative of the variance helps deeper networks more (section 3.3); and how many
// signs AdaNorm turns in rows that are wide enough for it (section 4.1, eq. 7).
#include <algorithm>
#include <cmath>

#include "src/ops/norm/ada_norm.h"
#include "src/ops/norm/norm.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/mini_jobs.h"
#include "studies/observed_norms.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {
namespace {

// The norms, with the results of a NumPy float64 program with random numbers of its own.
struct LayerNormVariant {
  const char *norm, *numpy_loss, *numpy_accuracy, *numpy_post_loss;
};
constexpr LayerNormVariant kLayerNormVariants[] = {
    {"none", "5.70/6.97/5.09", "0.26/0.19/0.23", "-"},
    {"layernorm", "0.505/0.496/0.468", "0.58/0.60/0.60", "0.80"},
    {"layernorm_simple", "0.506/0.502/0.490", "0.58/0.60/0.60", "0.83"},
    {"detachnorm", "0.734/0.754/0.761", "0.62/0.62/0.63", "0.90"},
    {"detachmean", "0.496/0.503/0.476", "0.58/0.60/0.60", "0.77"},
    {"detachvariance", "0.731/0.753/0.749", "0.62/0.62/0.63", "0.97"},
    {"adanorm{C=1,k=0.1}", "0.514/0.490/0.475", "0.58/0.59/0.60", "0.89"}};

// All but "none".
std::span<const LayerNormVariant> normed() { return std::span(kLayerNormVariants).subspan(1); }

constexpr int kBlocks = 12, kShallow[] = {2, 4, 8};
constexpr int kWideRows[] = {128, 512};
constexpr double kSignSlope = 0.1;  // AdaNorm's k
const std::string kSigned = "adanorm{C=1,k=0.1}";

// The runs of one norm, one entry per seed.
struct LayerNormRuns {
  std::vector<double> loss, accuracy, input_gradient;
};
using RunsByNorm = std::map<std::string, LayerNormRuns>;

LayerNormRuns train_seeds(const Options& options, const VectorRun& run, int seeds) {
  LayerNormRuns runs;
  for (int i = 0; i < seeds; ++i) {
    const train::Job job = vector_job(options, i, run);
    Training training(options.backend, job);
    runs.input_gradient.push_back(
        gradient_norm(options.backend, training.variables(), job, "stem"));
    training.run();
    runs.loss.push_back(training.evaluate(task::Split::kTrain).loss);
    runs.accuracy.push_back(1 - training.evaluate(task::Split::kTest).at("error") / 100);
  }
  return runs;
}

RunsByNorm train_all(const Options& options, std::span<const LayerNormVariant> variants, int seeds,
                     bool post) {
  RunsByNorm all;
  for (const LayerNormVariant& variant : variants) {
    all[variant.norm] = train_seeds(options, {.norm = variant.norm, .post = post}, seeds);
  }
  return all;
}

Table pre_table(const RunsByNorm& all) {
  Table table{
      "Norm inside the branch, a number a seed; input gradient: of h = x W in step 1 (NumPy: "
      "none 94 to 113, the others 0.06 to 0.09)",
      {{"norm", "train loss", "test accuracy", "input gradient", "NumPy train loss",
        "NumPy test accuracy"}}};
  for (const LayerNormVariant& v : kLayerNormVariants) {
    const LayerNormRuns& runs = all.at(v.norm);
    table.rows.push_back({v.norm, joined(runs.loss, 3), joined(runs.accuracy, 2),
                          joined(runs.input_gradient, 3), v.numpy_loss, v.numpy_accuracy});
  }
  return table;
}

Table post_table(const RunsByNorm& all) {
  Table table{"Norm after each sum, the first seed",
              {{"norm", "train loss", "test accuracy", "input gradient", "NumPy train loss"}}};
  for (const LayerNormVariant& v : normed()) {
    const LayerNormRuns& runs = all.at(v.norm);
    table.rows.push_back({v.norm, joined(runs.loss, 3), joined(runs.accuracy, 2),
                          joined(runs.input_gradient, 3), v.numpy_post_loss});
  }
  return table;
}

// The losses of the norms that differ only in derivatives, by the number of blocks.
LossesByDepth train_depths(const Options& options, const RunsByNorm& deepest, int seeds) {
  LossesByDepth losses;
  for (const char* norm : {"layernorm_simple", "detachmean", "detachvariance"}) {
    for (const int blocks : kShallow) {
      losses[blocks][norm] = train_seeds(options, {.norm = norm, .blocks = blocks}, seeds).loss;
    }
    losses[kBlocks][norm] = deepest.at(norm).loss;
  }
  return losses;
}

Table depth_table(const LossesByDepth& losses) {
  Table table{"Train loss by the number of blocks, norm inside the branch", {{"blocks"}}};
  for (const auto& [norm, values] : losses.begin()->second) table.rows[0].push_back(norm);
  for (const auto& [blocks, norms] : losses) {
    std::vector<std::string>& cells = table.rows.emplace_back(std::vector{std::to_string(blocks)});
    for (const auto& [norm, values] : norms) cells.push_back(joined(values, 3));
  }
  return table;
}

// Adds the rows that a norm takes in.
void add_rows(const Tensor& x, TrainedSigns& signs) {
  constexpr double kEps = 1e-5;
  for (std::int64_t i = 0; i < x.shape()[0]; ++i) {
    const std::span<const double> values = row(x, i);
    const double centre = mean(values), s = std::sqrt(variance(values) + kEps);
    for (const double value : values) {
      const double xhat = (value - centre) / s;
      ++signs.numbers;
      signs.beyond += !(std::abs(xhat) * kSignSlope < 1);
      signs.turned += !(xhat * kSignSlope <= 1);
      take_largest(signs.largest, xhat);
    }
  }
}

// All that the norms of a trained network take in over one pass.
TrainedSigns trained_signs(const Options& options, int i, int width) {
  const train::Job job = vector_job(options, i, {.norm = kSigned, .blocks = 2, .width = width});
  Training training(options.backend, job);
  training.run();
  TrainedSigns signs;
  const auto mark_rows = [](Graph& g) {
    for (const ObservedNorm& site : observed_norms(g, kAdaNorm)) {
      mark(g, site, "x", g.node(site.forward).inputs[NormInput::kX]);
    }
  };
  const auto look = [&](const Program& program) {
    for (const ObservedNorm& site : observed_norms(program.graph(), kAdaNorm)) {
      add_rows(fetch(program, site, "x"), signs);
    }
  };
  pass_over(options.backend, training.variables(), job, {.mark = mark_rows, .look = look});
  return signs;
}

void add_trained_signs(const Options& options, int seeds, Result& result) {
  Table table{
      "AdaNorm's rows after training, 2 blocks: shares of |xhat| >= 1/k and of signs turned",
      {{"width", "seed", "|xhat| >= 10", "turned", "largest xhat", "numbers"}}};
  for (const int width : kWideRows) {
    std::vector<TrainedSigns> all;
    for (int i = 0; i < seeds; ++i) {
      const TrainedSigns& s = all.emplace_back(trained_signs(options, i, width));
      table.rows.push_back(
          {std::to_string(width), fmt::format("{}", options.seed + std::uint64_t(i)),
           fmt::format("{:.2e}", s.beyond / s.numbers), fmt::format("{:.2e}", s.turned / s.numbers),
           fmt::format("{:.2f}", s.largest), fmt::format("{}", s.numbers)});
    }
    judge_trained_signs(width, kSignSlope, all, result);
  }
  result.tables.push_back(std::move(table));
}

}  // namespace

Result mini_layernorm(const Options& options) {
  const int seeds = options.seeds > 0 ? options.seeds : 3;
  const RunsByNorm pre = train_all(options, kLayerNormVariants, seeds, false);
  Result result;
  result.tables = {pre_table(pre), post_table(train_all(options, normed(), 1, true))};
  ValuesByNorm losses;
  for (const auto& [norm, runs] : pre) losses[norm] = runs.loss;
  result.seeds = std::size_t(seeds);
  judge_detached(losses, result);
  const LossesByDepth by_depth = train_depths(options, pre, seeds);
  result.tables.push_back(depth_table(by_depth));
  judge_deeper(by_depth, result);
  add_trained_signs(options, seeds, result);
  return result;
}

}  // namespace keel::study

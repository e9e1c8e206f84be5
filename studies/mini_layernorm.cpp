// The small counterpart of Xu et al. 2019, tables 1 to 4: which part of LayerNorm's backward helps.
#include <algorithm>

#include "studies/list.h"
#include "studies/mini_jobs.h"
#include "studies/summary.h"
#include "studies/training.h"
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

// Of one norm, one entry a seed.
struct LayerNormRuns {
  std::vector<double> loss, accuracy, input_gradient;
};
using RunsByNorm = std::map<std::string, LayerNormRuns>;

RunsByNorm train_all(const Options& options, std::span<const LayerNormVariant> variants, int seeds,
                     bool post) {
  RunsByNorm all;
  for (const LayerNormVariant& variant : variants) {
    LayerNormRuns& runs = all[variant.norm];
    for (int i = 0; i < seeds; ++i) {
      const train::Job job = vector_job(options, i, {variant.norm, post});
      Training training(options.backend, job, RowOrder::kDrawn);
      runs.input_gradient.push_back(training.gradient_norm("stem"));
      training.run();
      runs.loss.push_back(training.evaluate(task::Split::kTrain).loss);
      runs.accuracy.push_back(1 - training.evaluate(task::Split::kTest).at("error") / 100);
    }
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
  return result;
}

}  // namespace keel::study

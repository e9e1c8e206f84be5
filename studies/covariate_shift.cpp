// Internal covariate shift as Santurkar et al. 2018 (definition 2.1) measure it: how much the
// gradient of a layer's weights changes when the layers before it have been updated,
//     G  = dL/dW_i (W_1, ..., W_k)         at the weights of step t
//     G' = dL/dW_i (W_1', ..., W_{i-1}', W_i, ..., W_k)    those of step t + 1 before layer i
// both on the batch of step t. They find that it is no smaller with BatchNorm, which still trains
// better.
#include <algorithm>

#include "studies/gradient_probe.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/summary.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kShiftSteps = 60, kShiftEvery = 5;
const std::string kShiftRate = "0.1";

struct ShiftLine {
  std::int64_t step = 0;
  std::string layer;
  double distance = 0, cosine = 0;  // |G - G'|, and the cosine of the angle between them
};
struct ShiftRun {
  std::vector<ShiftLine> lines;
  std::vector<double> losses;
};

std::span<const double> part_of(const Weights& weights, const LayerWeights& layer) {
  return std::span(weights).subspan(layer.begin, layer.end - layer.begin);
}

class ShiftWatch {
 public:
  ShiftWatch(Backend& backend, const train::Job& job)
      : training_(backend, job), probe_(backend, job) {}

  ShiftRun run() {
    training_.run({.expect =
                       [this](std::int64_t step, const task::Batch& batch) {
                         if (step % kShiftEvery == 0) begin(batch);
                       },
                   .look =
                       [this](const TrainedStep& s) {
                         run_.losses.push_back(s.loss);
                         if (s.step % kShiftEvery == 0) compare(s.step);
                       }});
    return std::move(run_);
  }

 private:
  void begin(const task::Batch& batch) {
    probe_.take(batch);
    before_ = probe_.read(training_.variables());
    gradient_ = probe_.at(before_).gradient;
  }
  void compare(std::int64_t step) {
    const Weights after = probe_.read(training_.variables());
    for (const LayerWeights& layer : probe_.layers()) {
      if (layer.begin == 0) continue;  // nothing is before the first
      Weights mixed = before_;
      std::copy_n(after.begin(), layer.begin, mixed.begin());
      const Weights changed = probe_.at(mixed).gradient;
      const auto was = part_of(gradient_, layer), is = part_of(changed, layer);
      run_.lines.push_back({step, layer.name, length(differences(was, is)), cosine(was, is)});
    }
  }

  Training training_;
  GradientProbe probe_;
  Weights before_, gradient_;
  ShiftRun run_;
};

double median_shift(const ShiftRun& run, double ShiftLine::*what) {
  std::vector<double> values;
  for (const ShiftLine& line : run.lines) values.push_back(line.*what);
  return quantile(values, 0.5);
}

double mean_of_last_losses(const std::vector<double>& losses) {
  constexpr std::size_t kLast = 10;
  return mean(std::span(losses).last(std::min(kLast, losses.size())));
}

ShiftNumbers numbers_of(const ShiftRun& run) {
  return {median_shift(run, &ShiftLine::distance), median_shift(run, &ShiftLine::cosine),
          mean_of_last_losses(run.losses)};
}

}  // namespace

Result covariate_shift(const Options& options) {
  const std::string task = task_of(options, "mnist_mlp");
  Table summary{"medians over steps and layers",
                {{"norm", "|G - G'|", "cos(G, G')", "last train loss"}}},
      all{"every layer", {{"norm", "step", "layer", "l2", "cos"}}};
  std::map<std::string, ShiftRun> runs;
  for (const std::string& norm : norms_of(options, {"none", "batchnorm", "layernorm"})) {
    const train::Job job =
        zoo_job(options, 0,
                {task, norm, kShiftSteps, {{"train.optimizer", "sgd"}, {"train.lr", kShiftRate}}});
    const ShiftRun& run = runs[norm] = ShiftWatch(options.backend, job).run();
    summary.rows.push_back({norm, fmt::format("{:.4g}", median_shift(run, &ShiftLine::distance)),
                            fmt::format("{:.4f}", median_shift(run, &ShiftLine::cosine)),
                            fmt::format("{:.4f}", mean_of_last_losses(run.losses))});
    for (const ShiftLine& line : run.lines) {
      all.rows.push_back({norm, fmt::format("{}", line.step), line.layer,
                          fmt::format("{:.4g}", line.distance),
                          fmt::format("{:.4f}", line.cosine)});
    }
  }
  Result result;
  result.tables = {std::move(summary), std::move(all)};
  if (runs.contains("none") && runs.contains("batchnorm")) {
    judge_shift(task, numbers_of(runs.at("none")), numbers_of(runs.at("batchnorm")), result);
  }
  return result;
}

}  // namespace keel::study

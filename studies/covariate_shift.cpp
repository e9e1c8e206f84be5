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
#include "studies/memory_training.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kShiftSteps = 60, kShiftEvery = 5, kShiftSeeds = 3;

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
                       [this](const train::ObservedUpdate& update) {
                         if (update.place.step % kShiftEvery == 0) begin(update);
                       },
                   .look =
                       [this](const TrainedStep& s) {
                         run_.losses.push_back(s.loss);
                         if (s.step % kShiftEvery == 0) compare(s.step);
                       }});
    return std::move(run_);
  }

 private:
  void begin(const train::ObservedUpdate& update) {
    probe_.take(update);
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

// The mean over layers of |G - G'| after every update that was looked at.
io::PlotSeries series_of(const std::string& norm, const ShiftRun& run) {
  io::PlotSeries series{norm, {}, {}, {}, {}};
  double layers = 0;
  for (const ShiftLine& line : run.lines) {
    if (series.x.empty() || series.x.back() != double(line.step)) {
      series.x.push_back(double(line.step));
      series.y.push_back(0);
      layers = 0;
    }
    ++layers;
    series.y.back() += (line.distance - series.y.back()) / layers;
  }
  return series;
}

void add_shift_lines(const std::string& norm, const std::string& seed, const ShiftRun& run,
                     Table& table) {
  for (const ShiftLine& line : run.lines) {
    table.rows.push_back({norm, fmt::format("{}", line.step), line.layer,
                          fmt::format("{:.4g}", line.distance), fmt::format("{:.4f}", line.cosine),
                          seed});
  }
}

}  // namespace

Result covariate_shift(const Options& options) {
  const std::string task = task_of(options, "mnist_mlp");
  Table summary{"medians over steps and layers",
                {{"norm", "seed", "|G - G'|", "cos(G, G')", "last train loss"}}},
      all{"every layer", {{"norm", "step", "layer", "l2", "cos", "seed"}}};
  Drawing drawing{
      "shift",
      {.title = "", .x_label = "update", .y_label = "|G - G'|", .log_y = true, .series = {}}};
  Sample sample;
  std::map<std::string, std::vector<ShiftNumbers>> numbers;  // of the first of each name
  for (const std::string& norm : distinct_norms_of(options, {"none", "batchnorm", "layernorm"})) {
    const bool is_first = !numbers.contains(name_of_norm(norm));
    for (int i = 0; i < seeds_of(options, kShiftSeeds); ++i) {
      const train::Job job =
          zoo_job_of_one_batch(options, i, {task, norm, kShiftSteps, descent_settings(task)});
      const ShiftRun run = ShiftWatch(options.backend, job).run();
      const ShiftNumbers n = numbers_of(run);
      if (is_first) numbers[name_of_norm(norm)].push_back(n);
      const std::string seed = fmt::format("{}", options.seed + std::uint64_t(i));
      summary.rows.push_back({norm, seed, fmt::format("{:.4g}", n.distance),
                              fmt::format("{:.4f}", n.cosine), fmt::format("{:.4f}", n.loss)});
      add_shift_lines(norm, seed, run, all);
      if (i > 0) continue;
      drawing.plot.series.push_back(series_of(norm, run));
      sample.add(norm, training_text(job), job.train().seed);
    }
  }
  drawing.plot.title = sample.caption(
      "how far an update of the layers before a layer moves its gradient, |G - G'|, the mean over "
      "layers");
  Result result;
  result.tables = {std::move(summary), std::move(all)};
  result.drawings.push_back(std::move(drawing));
  if (numbers.contains("none") && numbers.contains("batchnorm")) {
    judge_shift(task, numbers.at("none"), numbers.at("batchnorm"), result);
  }
  if (!is_to_the_end(options)) result.leave_open_what_fails();
  return result;
}

}  // namespace keel::study

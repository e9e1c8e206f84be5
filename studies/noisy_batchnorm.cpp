// Noisy BatchNorm (Santurkar et al. 2018, section 2.1): noise after the norm, with a mean and a
// deviation of its own in every step, makes the activations' distribution extremely unstable, but
// training hardly suffers. Instability is the move of an activation's mean from step to step, in
// its standard deviations, and the factor by which these change:
//     |m' - m| / sqrt(v),   |log(v' / v)| / 2     means over features and steps
// at the input of the network's first ReLU or, in a linear network, of its second product.
#include <cmath>

#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "studies/batch_statistics.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kNoisySteps = 200, kNoisySeeds = 3;
constexpr std::size_t kWatchedFeatures = 3;  // whose moments are shown at every step

struct ActivationMoments {
  std::vector<double> mean, variance;  // (features)
};

struct NoisyRun {
  std::vector<double> losses;
  std::vector<ActivationMoments> moments;  // of every step
  double moved = 0, stretched = 0;
};

// The output of the first layer, after its norm.
Value first_activation(const Graph& g) {
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).op == &elementwise_op(EwCode::kRelu)) return g.node(i).inputs[0];
  }
  int products = 0;
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).op == &kMatmul && ++products == 2) return g.node(i).inputs[MatmulInput::kA];
  }
  fail(ErrorKind::kUsage,
       "[noisy-batchnorm] --task: expected a network with a ReLU or two products");
}

ActivationMoments moments_of(const Tensor& x) {
  ActivationMoments m;
  for (std::int64_t c = 0; c < x.shape()[1]; ++c) {
    const std::vector<double> values = column(x, c);
    m.mean.push_back(mean(values));
    m.variance.push_back(variance(values));
  }
  return m;
}

void add_move(const ActivationMoments& from, const ActivationMoments& to, NoisyRun& run) {
  double moved = 0, stretched = 0;
  int features = 0;
  for (std::size_t c = 0; c < from.mean.size(); ++c) {
    if (from.variance[c] == 0 || to.variance[c] == 0) continue;  // a unit that does nothing
    moved += std::abs(to.mean[c] - from.mean[c]) / std::sqrt(from.variance[c]);
    stretched += std::abs(std::log(to.variance[c] / from.variance[c])) / 2;
    ++features;
  }
  run.moved += moved / features;
  run.stretched += stretched / features;
}

NoisyRun noisy_run(Backend& backend, const train::Job& job) {
  Training training(backend, job);
  NoisyRun run;
  const auto mark_first = [](Graph& g) {
    g.mark_output("activation", rows_of_features(g, first_activation(g)));
  };
  const auto look = [&](const TrainedStep& s) {
    ActivationMoments now = moments_of(s.program->fetch("activation", true).to(DType::kF64));
    if (!run.moments.empty()) add_move(run.moments.back(), now, run);
    run.moments.push_back(std::move(now));
    run.losses.push_back(s.loss);
  };
  training.run({.mark = mark_first, .look = look});
  run.moved /= double(run.losses.size() - 1);
  run.stretched /= double(run.losses.size() - 1);
  return run;
}

double last_loss(const NoisyRun& run) {
  constexpr std::size_t kLast = 20;
  return mean(std::span(run.losses).last(std::min(kLast, run.losses.size())));
}

NoisyNumbers numbers_of(const NoisyRun& run) { return {last_loss(run), run.moved, run.stretched}; }

void add_moments(const std::string& norm, const NoisyRun& run, Table& table) {
  for (std::size_t step = 0; step < run.moments.size(); ++step) {
    const ActivationMoments& m = run.moments[step];
    for (std::size_t c = 0; c < std::min(kWatchedFeatures, m.mean.size()); ++c) {
      table.rows.push_back({norm, fmt::format("{}", step), fmt::format("{}", c),
                            fmt::format("{:.4g}", m.mean[c]),
                            fmt::format("{:.4g}", m.variance[c])});
    }
  }
}

io::PlotSeries loss_series(const std::string& norm, const NoisyRun& run) {
  io::PlotSeries series{norm, {}, {}, {}, {}};
  for (const double loss : run.losses) {
    series.x.push_back(double(series.x.size()));
    series.y.push_back(loss);
  }
  return series;
}

// A moment of the first watched feature at every step.
io::PlotSeries moment_series(const std::string& norm, const NoisyRun& run,
                             std::vector<double> ActivationMoments::*moment) {
  io::PlotSeries series{norm, {}, {}, {}, {}};
  for (const ActivationMoments& m : run.moments) {
    series.x.push_back(double(series.x.size()));
    series.y.push_back((m.*moment).front());
  }
  return series;
}

Drawing update_drawing(const std::string& name, const std::string& y_label) {
  return {name, {.title = "", .x_label = "update", .y_label = y_label, .series = {}}};
}

}  // namespace

Result noisy_batchnorm(const Options& options) {
  check(options.norms.empty(), ErrorKind::kUsage,
        "[noisy-batchnorm] --norm: it compares none, batchnorm and noisybatchnorm");
  const std::string task = task_of(options, "mnist_mlp");
  Table table{"the activations from step to step, and the mean of the last training losses",
              {{"norm", "moved", "stretched", "last train loss", "seed"}}};
  Table moments{"what the first layer gives after its norm, first seed",
                {{"norm", "step", "feature", "act_mean", "act_var"}}};
  Drawing losses = update_drawing("noisy-loss", "loss"),
          means = update_drawing("activation-mean", "mean"),
          variances = update_drawing("activation-variance", "variance");
  Sample sample;
  std::map<std::string, std::vector<NoisyNumbers>> numbers;
  for (const char* norm : {"none", "batchnorm", "noisybatchnorm"}) {
    for (int i = 0; i < seeds_of(options, kNoisySeeds); ++i) {
      const train::Job job = zoo_job(options, i, {task, norm, kNoisySteps, descent_settings(task)});
      const NoisyRun run = noisy_run(options.backend, job);
      const NoisyNumbers& n = numbers[norm].emplace_back(numbers_of(run));
      table.rows.push_back({norm, fmt::format("{:.4f}", n.moved),
                            fmt::format("{:.4f}", n.stretched), fmt::format("{:.4f}", n.loss),
                            fmt::format("{}", options.seed + std::uint64_t(i))});
      if (i > 0) continue;
      sample.add(norm, training_text(job), job.train().seed);
      add_moments(norm, run, moments);
      losses.plot.series.push_back(loss_series(norm, run));
      means.plot.series.push_back(moment_series(norm, run, &ActivationMoments::mean));
      variances.plot.series.push_back(moment_series(norm, run, &ActivationMoments::variance));
    }
  }
  losses.plot.title = sample.caption("training loss");
  means.plot.title = sample.caption("mean over the batch of one feature after the first norm");
  variances.plot.title =
      sample.caption("variance over the batch of one feature after the first norm");
  Result result;
  result.tables = {std::move(table), std::move(moments)};
  result.drawings = {std::move(losses), std::move(means), std::move(variances)};
  judge_noise(task, {numbers.at("none"), numbers.at("batchnorm"), numbers.at("noisybatchnorm")},
              result);
  if (!is_to_the_end(options)) result.leave_open_what_fails();
  return result;
}

}  // namespace keel::study

// Noisy BatchNorm (Santurkar et al. 2018, section 2.1): noise after the norm, with a mean and a
// deviation of its own in every step, makes the activations' distribution extremely unstable, but
// training hardly suffers. Instability is the move of an activation's mean from step to step, in
// its standard deviations, and the factor by which these change:
//     |m' - m| / sqrt(v),   |log(v' / v)| / 2     means over features and steps
// at the input of the network's first ReLU.
#include <cmath>

#include "src/ops/elementwise.h"
#include "studies/batch_statistics.h"
#include "studies/lab.h"
#include "studies/list.h"
#include "studies/summary.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kNoisySteps = 200;
const std::string kNoisyRate = "0.1";

struct ActivationMoments {
  std::vector<double> mean, variance;  // (features)
};

struct NoisyRun {
  std::vector<double> losses;
  double moved = 0, stretched = 0;
};

Value first_relu_input(const Graph& g) {
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (node.op != nullptr && node.op->name == "relu") return node.inputs[0];
  }
  fail(ErrorKind::kUsage, "[noisy-batchnorm] --task: expected a network with a ReLU");
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
  std::optional<ActivationMoments> last;
  const auto mark_first = [](Graph& g) {
    g.mark_output("activation", rows_of_features(g, first_relu_input(g)));
  };
  const auto look = [&](const TrainedStep& s) {
    const ActivationMoments now = moments_of(s.program.fetch("activation", true).to(DType::kF64));
    if (last) add_move(*last, now, run);
    last = now;
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

}  // namespace

Result noisy_batchnorm(const Options& options) {
  check(options.norms.empty(), ErrorKind::kUsage,
        "[noisy-batchnorm] --norm: it compares none, batchnorm and noisybatchnorm");
  const std::string task = task_of(options, "mnist_mlp");
  Table table{"the activations from step to step, and the mean of the last training losses",
              {{"norm", "moved", "stretched", "last train loss"}}};
  std::map<std::string, NoisyRun> runs;
  for (const char* norm : {"none", "batchnorm", "noisybatchnorm"}) {
    const train::Job job =
        zoo_job(options, 0,
                {task, norm, kNoisySteps, {{"train.optimizer", "sgd"}, {"train.lr", kNoisyRate}}});
    const NoisyRun& run = runs[norm] = noisy_run(options.backend, job);
    table.rows.push_back({norm, fmt::format("{:.4f}", run.moved),
                          fmt::format("{:.4f}", run.stretched),
                          fmt::format("{:.4f}", last_loss(run))});
  }
  Result result;
  result.tables.push_back(std::move(table));
  if (task == "mnist_mlp") {
    judge_noise({numbers_of(runs.at("none")), numbers_of(runs.at("batchnorm")),
                 numbers_of(runs.at("noisybatchnorm"))},
                result);
  }
  return result;
}

}  // namespace keel::study

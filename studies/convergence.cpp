// Convergence curves: a task trained with several norms, over seeds. A norm's speed is the number
// of updates after which it reaches the best validation result of the first norm, which usually is
// none (Ba, Kiros, Hinton 2016, figures 1 to 6; Xu et al. 2019, figures 1 to 3). The curves are of
// trainings here, or of runs.
#include <algorithm>
#include <cmath>
#include <utility>

#include "frontend/io/plot_text.h"
#include "frontend/report/curves.h"
#include "frontend/report/spread.h"
#include "frontend/train/update_probe.h"
#include "src/ops/elementwise.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/loss.h"
#include "studies/learning_curves.h"
#include "studies/list.h"
#include "studies/memory_training.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kCurveSeeds = 3, kCurveSteps = 300;
constexpr std::int64_t kCurvePoints = 20;  // of a training

const std::string kPlainLoss = "plain_loss";

// The summed loss of a node without its label smoothing; nothing of a node without any.
Value plain_loss_of(Graph& g, int i) {
  const Node& node = g.node(i);
  if (node.op == &kCrossEntropy) {
    CrossEntropyAttrs attrs = node.attrs.as<CrossEntropyAttrs>();
    if (std::exchange(attrs.label_smoothing, 0) == 0) return {};
    const Value logits = node.inputs[CrossEntropyInput::kLogits];
    return ops::cross_entropy(g, logits, node.inputs[CrossEntropyInput::kLabels], attrs).sum;
  }
  if (node.op != &kLinearCrossEntropy) return {};
  LinearLossAttrs attrs = node.attrs.as<LinearLossAttrs>();
  if (std::exchange(attrs.label_smoothing, 0) == 0) return {};
  using In = LinearLossInput;
  const std::vector<Value> in = node.inputs;
  return ops::linear_cross_entropy(g,
                                   {.x = in[In::kX],
                                    .table = in[In::kTable],
                                    .bias = in[In::kBias],
                                    .clusters = in[In::kClusters],
                                    .cluster_bias = in[In::kClusterBias],
                                    .labels = in[In::kLabels]},
                                   attrs)
      .sum;
}

// The mean loss of a batch without label smoothing, where there is such smoothing.
void mark_plain_loss(Graph& g) {
  Value sum;
  const int nodes = g.size();
  for (int i = 0; i < nodes; ++i) {
    const Value plain = plain_loss_of(g, i);
    if (plain.valid()) sum = sum.valid() ? ops::add(g, sum, plain) : plain;
  }
  if (sum.valid()) g.mark_output(kPlainLoss, ops::mul(g, sum, g.find_leaf("weight")));
}

bool has_label_smoothing(const train::Job& job) {
  const Graph graph =
      train::build_probe(job, job.network().sizes(job.train().batch), {.mark = mark_plain_loss});
  return std::ranges::count(graph.outputs(), kPlainLoss, &NamedValue::name) > 0;
}

// The mean over the updates since the last point; without smoothing it is that of the first
// micro-batches.
struct SinceLastPoint {
  double sum = 0, plain = 0;
  std::int64_t count = 0;
};

TrainingCurve curve_of(Backend& backend, const train::Job& job) {
  Training training(backend, job);
  const std::int64_t steps = training.total_steps(),
                     every = std::max<std::int64_t>(steps / kCurvePoints, 1);
  TrainingCurve curve;
  SinceLastPoint since;
  const bool is_smoothed = has_label_smoothing(job);
  const auto look = [&](const TrainedStep& s) {
    since.sum += s.loss;
    since.plain += is_smoothed ? s.program->scalar(kPlainLoss) / s.part : s.loss;
    ++since.count;
    if ((s.step + 1) % every != 0 && s.step + 1 != steps) return;
    const train::Evaluation valid = training.evaluate(task::Split::kValid);
    const train::Measured& first = valid.metrics.at(0);
    const double cost = first.info.higher_is_better ? -first.value : first.value;
    curve.push_back({s.step + 1, s.epoch, since.sum / double(since.count), valid.loss, first.value,
                     since.plain / double(since.count), cost});
    since = {};
  };
  StepObserver observer{.look = look};
  if (is_smoothed) observer.mark = mark_plain_loss;
  training.run(observer);
  return curve;
}

std::vector<CostPoint> costs_of(const TrainingCurve& curve) {
  std::vector<CostPoint> costs;
  for (const CurvePoint& point : curve) costs.push_back({double(point.step), point.cost});
  return costs;
}

// The speedup of every seed: how many times as many updates the first norm takes to its best cost.
SeedValues speedups(const NormCurves& first, const NormCurves& of) {
  SeedValues result;
  for (std::size_t i = 0; i < of.seeds.size(); ++i) {
    result.push_back(speedup(costs_of(first.seeds[i]), costs_of(of.seeds[i])));
  }
  return result;
}

// "0.512 (0.498 to 0.530)": the median and the range over seeds. "-" if one is unknown.
std::string range_text(const std::vector<double>& values) {
  if (std::ranges::any_of(values, [](double v) { return std::isnan(v); })) return "-";
  const auto [low, high] = std::ranges::minmax(values);
  return fmt::format("{:.4g} ({:.4g} to {:.4g})", report::median_of(values), low, high);
}

std::vector<double> last_of(const NormCurves& curves, double CurvePoint::*what) {
  std::vector<double> values;
  for (const TrainingCurve& curve : curves.seeds) values.push_back(curve.back().*what);
  return values;
}

Table summary_table(const std::vector<NormCurves>& all, const std::string& metric) {
  Table table{"after the last update: the median over seeds, and the range",
              {{"norm", "train loss", "unsmoothed", "valid loss", "valid " + metric, "speedup"}}};
  for (const NormCurves& curves : all) {
    table.rows.push_back({curves.norm, range_text(last_of(curves, &CurvePoint::train_loss)),
                          range_text(last_of(curves, &CurvePoint::plain_loss)),
                          range_text(last_of(curves, &CurvePoint::valid_loss)),
                          range_text(last_of(curves, &CurvePoint::metric)),
                          range_text(speedups(all.front(), curves))});
  }
  return table;
}

// The loss of trainings that all curves have.
double CurvePoint::*train_loss_of(const std::vector<NormCurves>& all) {
  for (const NormCurves& curves : all) {
    for (const TrainingCurve& curve : curves.seeds) {
      for (const CurvePoint& p : curve) {
        if (std::isnan(p.plain_loss)) return &CurvePoint::train_loss;
      }
    }
  }
  return &CurvePoint::plain_loss;
}

LastLosses last_losses(const NormCurves& curves, double CurvePoint::*train_loss) {
  return {curves.norm, last_of(curves, train_loss), last_of(curves, &CurvePoint::valid_loss)};
}

SeedValues best_costs(const NormCurves& curves) {
  SeedValues best;
  for (const TrainingCurve& curve : curves.seeds) {
    best.push_back(std::ranges::min(curve, {}, &CurvePoint::cost).cost);
  }
  return best;
}

// Each norm beside layernorm, if that is there.
void judge_bests(const CurvesTask& task, const std::vector<NormCurves>& all, Result& result) {
  const auto layernorm = std::ranges::find_if(
      all, [](const NormCurves& curves) { return name_of_norm(curves.norm) == "layernorm"; });
  if (layernorm == all.end()) return;
  for (const NormCurves& curves : all) {
    judge_best({task.name, curves.norm, best_costs(*layernorm), best_costs(curves)}, result);
  }
}

Table points_table(const std::vector<NormCurves>& all) {
  const auto train_loss = train_loss_of(all);
  const bool is_plain = train_loss == &CurvePoint::plain_loss;
  Table table{fmt::format("every curve; of trainings the loss is {}",
                          is_plain ? "unsmoothed" : "that of smoothed labels"),
              {{"step", "epoch", "split", "loss", "metric", "norm", "seed"}}};
  for (const NormCurves& curves : all) {
    for (std::size_t i = 0; i < curves.seeds.size(); ++i) {
      for (const CurvePoint& p : curves.seeds[i]) {
        const std::string step = fmt::format("{}", p.step), epoch = fmt::format("{:.3f}", p.epoch),
                          seed = fmt::format("{}", curves.numbers[i]);
        table.rows.push_back(
            {step, epoch, "train", fmt::format("{:.5g}", p.*train_loss), "", curves.norm, seed});
        table.rows.push_back({step, epoch, "valid", fmt::format("{:.5g}", p.valid_loss),
                              fmt::format("{:.5g}", p.metric), curves.norm, seed});
      }
    }
  }
  return table;
}

Drawing drawing_of(const std::vector<NormCurves>& all, const std::string& name,
                   const std::string& words, double CurvePoint::*what) {
  Drawing drawing{name, {.title = "", .x_label = "update", .y_label = words, .series = {}}};
  Sample sample;
  for (const NormCurves& curves : all) {
    for (const std::int64_t seed : curves.numbers) sample.add(curves.norm, curves.training, seed);
    std::vector<report::Line> lines;
    for (const TrainingCurve& curve : curves.seeds) {
      report::Line& line = lines.emplace_back();
      for (const CurvePoint& p : curve) {
        line.x.push_back(double(p.step));
        line.y.push_back(p.*what);
      }
    }
    const report::Band band = report::band_of(lines);
    drawing.plot.series.push_back({curves.norm, band.x, band.median, band.low, band.high});
  }
  drawing.plot.title =
      sample.caption(words + "; lines: medians over seeds, bands: smallest to largest");
  return drawing;
}

CurvesTask trained_curves(const Options& options, std::vector<NormCurves>& all) {
  CurvesTask task{task_of(options, "mnist_mlp"), "metric"};
  for (const std::string& norm : norms_of(options, {"none", "batchnorm", "layernorm"})) {
    NormCurves& curves = all.emplace_back(NormCurves{norm, {}, {}});
    for (int i = 0; i < seeds_of(options, kCurveSeeds); ++i) {
      const train::Job job = zoo_job(options, i, {task.name, norm, kCurveSteps});
      const auto metrics = job.task().metrics();
      if (!metrics.empty()) {
        task.metric = metrics[0].name;
        task.unit = metrics[0].unit;
      }
      curves.training = training_text(job);
      curves.seeds.push_back(curve_of(options.backend, job));
      curves.numbers.push_back(job.train().seed);
    }
  }
  return task;
}

}  // namespace

Result convergence(const Options& options) {
  std::vector<NormCurves> all;
  const CurvesTask task =
      options.runs.empty() ? trained_curves(options, all) : curves_of_runs(options, all);
  Result result;
  result.tables = {summary_table(all, task.metric), points_table(all)};
  result.drawings = {
      drawing_of(all, "train-loss", "training loss", train_loss_of(all)),
      drawing_of(all, "valid-loss", "validation loss", &CurvePoint::valid_loss),
      drawing_of(all, "valid-" + task.metric, "validation " + io::words_of_quantity(task.metric),
                 &CurvePoint::metric)};
  for (std::size_t i = 1; i < all.size(); ++i) {
    judge_speedup({task.name, all[0].norm, all[i].norm, speedups(all[0], all[i])}, result);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      judge_curves({task.name, task.data, last_losses(all[i], train_loss_of(all)),
                    last_losses(all[j], train_loss_of(all))},
                   result);
    }
  }
  if (!task.unit.empty()) result.drawings.back().plot.y_label += ", " + task.unit;
  judge_bests(task, all, result);
  const bool is_whole = options.runs.empty() ? is_to_the_end(options) : !task.data.empty();
  if (!is_whole) result.leave_open_what_fails();
  return result;
}

}  // namespace keel::study

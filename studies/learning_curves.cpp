#include "studies/learning_curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "frontend/report/run.h"
#include "models/registry.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

std::string setting(const report::Run& run, const std::string& key) {
  const auto found = run.settings.find(key);
  return found == run.settings.end() ? "" : found->second;
}

std::int64_t seed_number(const report::Run& run) {
  const std::string text = setting(run, "train.seed");
  std::int64_t seed = 0;
  std::from_chars(text.data(), text.data() + text.size(), seed);
  return seed;
}

// The mean of what was logged after one step up to another; the value before where nothing was.
double mean_between(const report::Curve& curve, double after, double until, double before) {
  double sum = 0;
  int count = 0;
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    if (curve.step[i] <= after || curve.step[i] > until) continue;
    sum += curve.value[i];
    ++count;
  }
  return count > 0 ? sum / count : before;
}

// The value of a curve at a step where it has one.
double value_at(const report::Curve& curve, double step) {
  const auto found = std::ranges::find(curve.step, step);
  return found == curve.step.end() ? NAN : curve.value[std::size_t(found - curve.step.begin())];
}

// Tasks without this setting, and runs from before it, smooth nothing.
bool smooths_labels(const report::Run& run) {
  const std::string text = setting(run, "model.label_smoothing");
  double smoothing = 0;
  std::from_chars(text.data(), text.data() + text.size(), smoothing);
  return smoothing > 0;
}

TrainingCurve curve_of_run(const report::Run& run, const task::MetricInfo& metric) {
  const report::Curve *steps = report::find_curve(run, "step", "loss"),
                      *loss = report::find_curve(run, "valid", "loss"),
                      *measured = report::find_curve(run, "valid", metric.name);
  check(steps != nullptr && loss != nullptr && measured != nullptr, ErrorKind::kBadInput,
        "{}: expected a run with losses and a validation in its log, got none",
        run.folder.string());
  TrainingCurve curve;
  const bool is_smoothed = smooths_labels(run);
  double before = steps->value.front(), last = 0;
  for (std::size_t i = 0; i < measured->step.size(); ++i) {
    const double step = measured->step[i], value = measured->value[i];
    if (!std::isfinite(value)) continue;
    before = mean_between(*steps, last, step, before);
    curve.push_back({.step = std::int64_t(step),
                     .epoch = report::epoch_at(run, step).value_or(0),
                     .train_loss = before,
                     .valid_loss = value_at(*loss, step),
                     .metric = value,
                     .plain_loss = is_smoothed ? NAN : before,
                     .cost = metric.higher_is_better ? -value : value});
    last = step;
  }
  check(!curve.empty(), ErrorKind::kBadInput, "{}: expected a {} that is finite, got none",
        run.folder.string(), metric.name);
  return curve;
}

// The data of a run that was trained to its end; empty for one that has not ended, or had built-in
// data.
std::string data_of(const report::Run& run) {
  if (run.outcome != report::Outcome::kFinished || setting(run, "data.source") == "builtin") {
    return "";
  }
  for (const char* key : {"model.corpus", "model.task"}) {
    const std::string corpus = setting(run, key);
    if (!corpus.empty() && corpus != "files") return corpus;
  }
  return run.data;
}

NormCurves& curves_of(std::vector<NormCurves>& all, const std::string& norm) {
  const auto found = std::ranges::find(all, norm, &NormCurves::norm);
  return found == all.end() ? all.emplace_back(NormCurves{norm, {}, {}}) : *found;
}

// In the order of the seeds, so that norms are compared seed by seed.
void add_curve(NormCurves& curves, std::int64_t seed, TrainingCurve curve) {
  const auto at = std::ranges::lower_bound(curves.numbers, seed);
  check(at == curves.numbers.end() || *at != seed, ErrorKind::kUsage,
        "[convergence] --run: expected each seed of {} once, got {} twice", curves.norm, seed);
  curves.seeds.insert(curves.seeds.begin() + (at - curves.numbers.begin()), std::move(curve));
  curves.numbers.insert(at, seed);
}

}  // namespace

CurvesTask curves_of_runs(const Options& options, std::vector<NormCurves>& all) {
  CurvesTask task;
  task::MetricInfo metric;
  for (const std::string& path : options.runs) {
    const report::Run run = report::read_run(run_folder_of(path));
    if (task.name.empty()) {
      const auto metrics = models::find_model(run.model).make()->metrics();
      check(!metrics.empty(), ErrorKind::kUsage, "[convergence] --run: {} has no metric",
            run.model);
      metric = metrics[0];
      task = {run.model, metric.name, data_of(run), metric.unit};
    }
    if (data_of(run) != task.data) task.data.clear();
    check(run.model == task.name, ErrorKind::kUsage,
          "[convergence] --run: expected runs of one task, got {} and {}", task.name, run.model);
    NormCurves& curves = curves_of(all, setting(run, "model.norm"));
    curves.training = fmt::format("{} on {}", run.model, report::data_name(run));
    add_curve(curves, seed_number(run), curve_of_run(run, metric));
  }
  for (const NormCurves& curves : all) {
    check(curves.numbers == all.front().numbers, ErrorKind::kUsage,
          "[convergence] --run: expected the same seeds of every norm, but {} and {} differ",
          all.front().norm, curves.norm);
  }
  return task;
}

}  // namespace keel::study

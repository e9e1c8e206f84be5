// Updates of one size, gathered from ever smaller batches. Norms over the batch then take their
// statistics from fewer rows; norms of a row do not change (Shen et al. 2020, figure 5).
#include <algorithm>
#include <cmath>

#include "frontend/report/spread.h"
#include "frontend/train/step_runner.h"
#include "studies/list.h"
#include "studies/training.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kBatchSizeSteps = 200, kBatchSizeSeeds = 1;
constexpr std::int64_t kParts[] = {8, 4, 2, 1};  // micro-batches of an update

struct BatchSizeRun {
  std::string norm;
  std::int64_t batch = 0;                            // rows or tokens of a statistic
  std::vector<double> valid = {}, last_metric = {};  // one a seed: the loss, the last metric
  std::string metric = {};
};

// All updates, with gradients gathered from job.train().accumulate batches each.
void train_gathered(train::StepRunner& steps, std::int64_t updates) {
  steps.initialize();
  train::StepPlace place;
  for (std::int64_t of_epoch = 0; place.step < updates; ++place.step) {
    steps.start(place);
    steps.next(true);
    place.batch += steps.micro_batches(place);
    if (++of_epoch < steps.steps(std::uint32_t(place.epoch))) continue;
    ++place.epoch;
    place.batch = of_epoch = 0;
  }
}

train::Evaluation evaluate_gathered(Backend& backend, const train::Job& job) {
  const auto stream =
      job.splits().stream(task::Split::kTrain,
                          {.batch = job.train().batch, .shuffle = std::uint64_t(job.train().seed)});
  Variables variables(backend, std::uint64_t(job.train().seed));
  train::StepRunner steps(backend, variables, job, *stream);
  train_gathered(steps, job.train().max_steps);
  const auto valid = job.splits().stream(task::Split::kValid, train::evaluation_options(job));
  return train::Evaluator(backend, variables, job).run(*valid);
}

BatchSizeRun run_with(const Options& options, const ZooRun& run, std::int64_t parts) {
  BatchSizeRun found{.norm = run.norm};
  const int seeds = options.seeds > 0 ? options.seeds : kBatchSizeSeeds;
  for (int i = 0; i < seeds; ++i) {
    train::Job whole_batches = zoo_job(options, i, run);
    const std::int64_t whole = whole_batches.train().batch;
    check(whole >= parts, ErrorKind::kUsage,
          "[batch-size] train.batch: expected at least {}, got {}", parts, whole);
    found.batch = whole / parts;
    // As many epochs as the updates take, whatever the recipe says.
    const train::Job job = std::move(whole_batches)
                               .with({{"train.batch", std::to_string(found.batch)},
                                      {"train.accumulate", std::to_string(parts)},
                                      {"train.epochs", "1000000"}});
    const train::Evaluation valid = evaluate_gathered(options.backend, job);
    found.valid.push_back(valid.loss);
    found.metric = valid.metrics.back().info.name;
    found.last_metric.push_back(valid.metrics.back().value);
  }
  return found;
}

Table batch_size_table(const std::vector<BatchSizeRun>& runs) {
  Table table{"validation set, the median over seeds",
              {{"variant", "m", runs.front().metric, "valid loss"}}};
  for (const BatchSizeRun& run : runs) {
    table.rows.push_back({run.norm, fmt::format("{}", run.batch),
                          fmt::format("{:.4g}", report::median_of(run.last_metric)),
                          fmt::format("{:.4f}", report::median_of(run.valid))});
  }
  return table;
}

Drawing batch_size_drawing(const std::vector<BatchSizeRun>& runs) {
  Drawing drawing{"batch-size",
                  {.title = "validation loss by the batch of a statistic",
                   .x_label = "batch",
                   .y_label = "loss",
                   .series = {}}};
  for (const BatchSizeRun& run : runs) {
    auto& series = drawing.plot.series;
    if (series.empty() || series.back().name != run.norm)
      series.push_back({run.norm, {}, {}, {}, {}});
    series.back().x.push_back(double(run.batch));
    series.back().y.push_back(report::median_of(run.valid));
  }
  return drawing;
}

// Losses of a norm with so many micro-batches an update.
const SeedValues& losses_with(const std::vector<BatchSizeRun>& runs, const std::string& norm,
                              std::int64_t parts) {
  const auto first = std::ranges::find(runs, norm, &BatchSizeRun::norm);
  return first[std::ranges::find(kParts, parts) - std::begin(kParts)].valid;
}

}  // namespace

Result batch_size(const Options& options) {
  const std::string task = task_of(options, "translation");
  const std::vector<std::string> norms =
      norms_of(options, {"layernorm", "batchnorm", "pn_v", "powernorm"});
  std::vector<BatchSizeRun> runs;
  for (const std::string& norm : norms) {
    for (const std::int64_t parts : kParts) {
      runs.push_back(run_with(options, {task, norm, kBatchSizeSteps}, parts));
    }
  }
  Result result;
  result.tables = {batch_size_table(runs)};
  result.drawings = {batch_size_drawing(runs)};
  for (const std::string& norm : norms) {
    judge_growth(task + ", " + norm, losses_with(runs, norm, std::ranges::min(kParts)),
                 losses_with(runs, norm, std::ranges::max(kParts)), result);
  }
  return result;
}

}  // namespace keel::study

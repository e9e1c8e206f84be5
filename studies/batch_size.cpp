// Updates of one size, gathered from ever smaller batches. Norms over the batch then take their
// statistics from fewer rows; norms of a row do not change (Shen et al. 2020, figure 5). The
// networks are trained here, or have been by `keel train` with train.batch and train.accumulate.
// The score on the test set counts, that of the average of the last checkpoints where the recipe
// has one.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "frontend/report/spread.h"
#include "frontend/train/shard_graph.h"
#include "studies/batch_size_scores.h"
#include "studies/list.h"
#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"
#include "studies/zoo_job.h"

namespace keel::study {
namespace {

constexpr int kBatchSizeSteps = 200, kBatchSizeSeeds = 1;
constexpr std::int64_t kParts[] = {8, 4, 2, 1};  // micro-batches of an update

// Their program scales the rows in front of its norms over the batch; PowerNorm scales its own.
task::OptionValues source_settings(const std::string& task) {
  task::OptionValues settings = encoder_settings(task);
  if (task == "translation") {
    settings.push_back({"model.scaling", "layerscaling"});
    settings.push_back({"model.scaled_norms", "batchnorm,pn_v"});
  }
  return settings;
}

BatchSizeRun run_with(const Options& options, const ZooRun& run, std::int64_t parts) {
  BatchSizeRun found{.norm = run.norm};
  for (int i = 0; i < seeds_of(options, kBatchSizeSeeds); ++i) {
    train::Job whole_batches = zoo_job_of_one_batch(options, i, run);
    const std::int64_t whole = whole_batches.train().batch;
    check(whole >= parts, ErrorKind::kUsage,
          "[batch-size] train.batch: expected at least {}, got {}", parts, whole);
    found.batch = whole / parts;
    const train::Job job = std::move(whole_batches)
                               .with({{"train.batch", std::to_string(found.batch)},
                                      {"train.accumulate", std::to_string(parts)},
                                      {"train.statistics", "local"}});
    found.training = training_text(job);
    add_trained_score(options.backend, job, found);
  }
  return found;
}

std::vector<BatchSizeRun> trained_runs(const Options& options, const std::string& task,
                                       const std::vector<std::string>& norms) {
  std::vector<BatchSizeRun> runs;
  for (const std::string& norm : norms) {
    for (const std::int64_t parts : kParts) {
      runs.push_back(
          run_with(options, {task, norm, kBatchSizeSteps, source_settings(task), true}, parts));
    }
  }
  return runs;
}

Table batch_size_table(const std::vector<BatchSizeRun>& runs) {
  Table table{"test set, the median over seeds",
              {{"variant", "m", runs.front().metric_name, "test loss", "seeds", "weights"}}};
  for (const BatchSizeRun& run : runs) {
    table.rows.push_back({run.norm, fmt::format("{}", run.batch),
                          fmt::format("{:.4g}", report::median_of(run.metric)),
                          fmt::format("{:.4f}", report::median_of(run.loss)),
                          fmt::format("{}", run.seeds.size()), run.weights});
  }
  return table;
}

Drawing batch_size_drawing(const std::vector<BatchSizeRun>& runs) {
  const std::string &metric = runs.front().metric_name, &unit = runs.front().metric_unit;
  Drawing drawing{"batch-size",
                  {.title = "",
                   .x_label = "rows or tokens of a statistic",
                   .y_label = unit.empty() ? metric : metric + ", " + unit,
                   .series = {}}};
  Sample sample;
  for (const BatchSizeRun& run : runs) {
    for (const std::int64_t seed : run.seeds) sample.add(run.norm, run.training, seed);
    auto& series = drawing.plot.series;
    if (series.empty() || series.back().name != run.norm)
      series.push_back({run.norm, {}, {}, {}, {}});
    series.back().x.push_back(double(run.batch));
    series.back().y.push_back(report::median_of(run.metric));
  }
  drawing.plot.title = sample.caption(fmt::format(
      "test {} by the size of the batches of which a norm takes statistics; lines: medians over "
      "seeds",
      metric));
  return drawing;
}

// The source's claim about two norms: PN-V reaches layer norm with statistics of the whole update,
// and not with smaller ones; batch norm is worst.
struct BatchSizeClaim {
  const char *better, *worse;
  bool equal_at_largest = false;  // there the source has both equal, and the claim is of the rest
};
constexpr BatchSizeClaim kBatchSizeClaims[] = {{"powernorm", "layernorm"},
                                               {"layernorm", "batchnorm"},
                                               {"layernorm", "pn_v", true},
                                               {"pn_v", "batchnorm"}};

// a's metric less b's, with the sign of an improvement, of the seeds that both have.
SeedValues margins_of(const BatchSizeRun& a, const BatchSizeRun& b) {
  SeedValues margins;
  for (std::size_t i = 0; i < a.seeds.size(); ++i) {
    const auto same = std::ranges::find(b.seeds, a.seeds[i]);
    if (same == b.seeds.end()) continue;
    const double margin = a.metric[i] - b.metric[std::size_t(same - b.seeds.begin())];
    margins.push_back(a.higher_is_better ? margin : -margin);
  }
  return margins;
}

// The facts that all runs have in common.
struct BatchSizeTask {
  std::string name;
  std::int64_t update = 0;  // rows or tokens
  bool is_of_source = false;
};

void judge_sizes(const BatchSizeTask& task, const std::vector<BatchSizeRun>& runs, Result& result) {
  for (const BatchSizeClaim& claim : kBatchSizeClaims) {
    for (const BatchSizeRun& a : runs) {
      for (const BatchSizeRun& b : runs) {
        const bool is_pair =
            name_of_norm(a.norm) == claim.better && name_of_norm(b.norm) == claim.worse;
        if (!is_pair || a.batch != b.batch) continue;
        const SeedValues margins = margins_of(a, b);
        if (margins.empty()) continue;
        judge_margin({fmt::format("{}, m = {}: {} of {} above {}'s", task.name, a.batch,
                                  a.metric_name, a.norm, b.norm),
                      task.is_of_source, margins, claim.equal_at_largest && a.batch == task.update},
                     result);
      }
    }
  }
}

// How much a norm loses from its largest size to its smallest.
void judge_losses(const std::string& task, const std::vector<BatchSizeRun>& runs, Result& result) {
  std::set<std::string> norms;
  for (const BatchSizeRun& run : runs) {
    if (!norms.insert(run.norm).second) continue;
    std::map<std::int64_t, SeedValues> by_size;
    for (const BatchSizeRun& r : runs) {
      if (r.norm == run.norm) by_size[r.batch] = r.loss;
    }
    const SeedValues &smallest = by_size.begin()->second, &largest = by_size.rbegin()->second;
    if (by_size.size() > 1 && smallest.size() == largest.size()) {
      judge_growth(task + ", " + run.norm, largest, smallest, result);
    }
  }
}

Result result_of(const BatchSizeTask& task, const std::vector<BatchSizeRun>& runs) {
  Result result;
  result.tables = {batch_size_table(runs)};
  result.drawings = {batch_size_drawing(runs)};
  judge_losses(task.name, runs, result);
  judge_sizes(task, runs, result);
  return result;
}

// The place of a run among those of its norm and size, in the order of norms and sizes.
BatchSizeRun& run_like(std::vector<BatchSizeRun>& runs, const std::string& norm,
                       std::int64_t batch) {
  const auto place = [&](const BatchSizeRun& r) { return std::pair(r.norm, r.batch); };
  const auto at = std::ranges::lower_bound(runs, std::pair(norm, batch), {}, place);
  if (at != runs.end() && place(*at) == std::pair(norm, batch)) return *at;
  return *runs.insert(at, BatchSizeRun{.norm = norm, .batch = batch});
}

void add_stored(const Options& options, const StoredRun& stored, std::vector<BatchSizeRun>& runs) {
  const train::TrainOptions& train = stored.job.train();
  BatchSizeRun& run = run_like(runs, setting_of(stored.job, "model.norm"), train.batch);
  check(
      std::ranges::find(run.seeds, train.seed) == run.seeds.end(), ErrorKind::kUsage,
      "[batch-size] --run: expected runs that differ in norm, train.batch or seed, got {} besides "
      "another",
      stored.path);
  run.training = training_text(stored);
  add_score_of(options, stored, run);
}

// Throws unless updates are of one size and each batch has statistics of its own: only these may
// differ.
BatchSizeTask common_task(const std::vector<StoredRun>& runs) {
  std::set<std::int64_t> sizes;
  std::set<std::string> tasks, corpora;
  for (const StoredRun& stored : runs) {
    const train::TrainOptions& train = stored.job.train();
    check(!train::shares_statistics(stored.job), ErrorKind::kUsage,
          "[batch-size] --run: expected train.statistics = local, because the statistics of {} are "
          "those of the whole update, got synchronised",
          stored.path);
    sizes.insert(train.batch * train.accumulate);
    tasks.emplace(stored.job.task().name());
    corpora.insert(finished_corpus_of(stored));
  }
  check(tasks.size() == 1, ErrorKind::kUsage,
        "[batch-size] --run: expected runs of one task, got {}", fmt::join(tasks, ", "));
  check(sizes.size() == 1, ErrorKind::kUsage,
        "[batch-size] --run: expected one train.batch * train.accumulate, got {}",
        fmt::join(sizes, ", "));
  return {*tasks.begin(), *sizes.begin(), corpora == std::set<std::string>{"iwslt14"}};
}

Result batch_size_of_runs(const Options& options) {
  const std::vector<StoredRun> stored = open_runs(options);
  const BatchSizeTask task = common_task(stored);
  constexpr std::string_view kMayDiffer[] = {
      "model.norm",  "model.final_norm", "model.scaling",   "model.scaled_norms",
      "train.batch", "train.accumulate", "train.statistics"};
  expect_one_recipe("batch-size", stored, kMayDiffer);
  std::vector<BatchSizeRun> runs;
  for (const StoredRun& one : stored) add_stored(options, one, runs);
  return result_of(task, runs);
}

}  // namespace

Result batch_size(const Options& options) {
  if (!options.runs.empty()) return batch_size_of_runs(options);
  const std::string task = task_of(options, "translation");
  std::vector<std::string> source = source_norms(options, task);
  source.insert(source.begin(), "layernorm");
  const std::vector<BatchSizeRun> runs = trained_runs(options, task, norms_of(options, source));
  return result_of({task, std::ranges::max(runs, {}, &BatchSizeRun::batch).batch}, runs);
}

}  // namespace keel::study

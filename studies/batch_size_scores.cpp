#include "studies/batch_size_scores.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "frontend/report/figures.h"
#include "frontend/train/run_result.h"
#include "frontend/train/run_state.h"
#include "studies/memory_training.h"

namespace keel::study {
namespace {

// The score of the weights of one training.
struct Score {
  double loss = 0, metric = 0;
  task::MetricInfo info;
  std::string weights;
};

void add_score(const Score& score, std::int64_t seed, BatchSizeRun& run) {
  run.seeds.push_back(seed);
  run.loss.push_back(score.loss);
  run.metric.push_back(score.metric);
  run.metric_name = score.info.name;
  run.metric_unit = score.info.unit;
  run.higher_is_better = score.info.higher_is_better;
  const bool is_like = run.weights.empty() || run.weights == score.weights;
  run.weights = is_like ? score.weights : "averaged or best";
}

Score score_of(const train::Evaluation& test, bool is_averaged) {
  const train::Measured& last = test.metrics.back();
  return {test.loss, last.value, last.info, is_averaged ? "averaged" : "best"};
}

// A folder that is removed in the end.
class ScratchFolder {
 public:
  ScratchFolder()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("keel-batch-size-{}-{}", getpid(), ++count_)) {}
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  static inline int count_ = 0;
  std::filesystem::path path_;
};

// Adds the test score that a finished run reports for its averaged weights, or otherwise for its
// best ones.
bool add_reported(const StoredRun& stored, BatchSizeRun& run) {
  const std::filesystem::path folder = run_folder_of(stored.path);
  if (!train::is_finished({folder})) return false;
  const report::Run read = report::read_run(folder);
  const task::MetricInfo metric = stored.job.task().metrics().back();
  for (const char* weights : {"averaged", "best"}) {
    const auto loss = report::value_in(read, {"test", "loss", weights, "", false}),
               value = report::value_in(
                   read, {"test", metric.name, weights, metric.unit, metric.higher_is_better});
    if (!loss || !value) continue;
    add_score({*loss, *value, metric, weights}, stored.job.train().seed, run);
    return true;
  }
  return false;
}

// Measures the weights of a checkpoint on the test set.
void add_measured(Backend& backend, const StoredRun& stored, BatchSizeRun& run) {
  const std::filesystem::path average = train::RunFolder{run_folder_of(stored.path)}.average();
  const bool is_averaged = std::filesystem::exists(average);
  Variables variables(backend, 0);
  train::Evaluator evaluator(backend, variables, stored.job);
  evaluator.declare();
  if (is_averaged) {
    train::load_finite(io::read_safetensors(average, {.require_checksums = true}), average,
                       variables);
  } else {
    train::load_finite(stored.file, stored.path, variables);
  }
  add_score(score_of(evaluation_of(evaluator, stored.job, task::Split::kTest), is_averaged),
            stored.job.train().seed, run);
}

}  // namespace

void add_trained_score(Backend& backend, const train::Job& job, BatchSizeRun& run) {
  const ScratchFolder folder;
  train::Trainer trainer(backend, job, {.folder = folder.path(), .quiet = true});
  const train::Summary summary = trainer.run();
  if (summary.signal != 0) std::raise(summary.signal);
  const bool is_averaged = summary.average_test.has_value();
  const train::Evaluation& test =
      is_averaged ? *summary.average_test : summary.best_test.value_or(summary.test);
  add_score(score_of(test, is_averaged), job.train().seed, run);
}

void add_score_of(const Options& options, const StoredRun& stored, BatchSizeRun& run) {
  if (options.settings.empty() && add_reported(stored, run)) return;
  add_measured(options.backend, stored, run);
}

}  // namespace keel::study

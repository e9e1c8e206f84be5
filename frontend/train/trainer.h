// The training loop: steps, evaluations, checkpoints, early stopping, signals.
#pragma once

#include <filesystem>
#include <optional>

#include "frontend/train/checkpoint_store.h"
#include "frontend/train/config.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/metrics_log.h"
#include "frontend/train/progress.h"
#include "frontend/train/run_state.h"

namespace keel::train {

struct Summary {
  RunState state;
  Evaluation valid, test;         // of the last weights
  std::optional<Evaluation> best_test;     // of the weights that were best on the validation set
  std::optional<Evaluation> average_test;  // of the average of the last checkpoints
  double train_loss = 0;                   // mean over the last epoch
  double seconds = 0, rows_per_second = 0;
  int signal = 0;  // the signal that ended the run early, or 0
  bool stopped_early = false;
};

struct RunOptions {
  std::filesystem::path folder;  // the run's folder: config, metrics, checkpoints, plots
  bool resume = false;
  bool quiet = false;
  task::OptionValues facts;  // for [run] of config.toml: versions, hardware
};

// The layout of a run's folder.
struct RunFolder {
  explicit RunFolder(std::filesystem::path f) : folder(std::move(f)) {}
  std::filesystem::path folder;
  std::filesystem::path config() const { return folder / "config.toml"; }
  std::filesystem::path metrics() const { return folder / "metrics.jsonl"; }
  std::filesystem::path events() const { return folder / "events"; }
  std::filesystem::path checkpoints() const { return folder / "checkpoints"; }
  std::filesystem::path average() const { return folder / "average.safetensors"; }
  std::filesystem::path loss_plot() const { return folder / "loss.svg"; }
  std::filesystem::path error_plot() const { return folder / "error.svg"; }
};

class Trainer {
 public:
  // Loads the data and compiles the step. Throws Error{kUsage} when the batches do not fit the
  // data.
  Trainer(Backend& backend, const Config& config, const RunOptions& options);

  // Trains to the end, to an early stop or to a signal; every way ends with a checkpoint. Throws
  // Error{kDiverged} naming the first node whose value is not finite; the last checkpoint is kept.
  Summary run();

 private:
  void resume();
  void run_epoch();
  void run_step();
  double run_micro_batch(Program& program, std::int64_t batch);
  void check_finite(double loss);
  void finish_epoch();
  void evaluate();
  void log_step(double loss);
  void save(bool is_best);
  bool is_done() const;
  Summary summarize();
  Evaluation evaluate_file(const TensorFile& file, const std::string& where);
  std::int64_t total_steps() const;
  double seconds() const;

  Backend& backend_;
  const Config& config_;
  RunOptions options_;
  RunFolder folder_;
  task::Splits data_;
  Variables variables_;
  data::Batcher batcher_;
  Feeder feeder_;
  std::unique_ptr<Program> step_, accumulate_;
  Evaluator evaluator_;
  CheckpointStore store_;
  Progress progress_;
  struct Logs;
  std::shared_ptr<Logs> logs_;
  Tensor lr_, step_number_, tick_;
  RunState state_;
  Evaluation valid_;
  double epoch_loss_ = 0;  // mean of the last full epoch
  std::int64_t rows_done_ = 0;
  double started_ = 0;
};

}  // namespace keel::train

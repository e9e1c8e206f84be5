// The training loop: steps, evaluations, checkpoints, early stopping, signals.
#pragma once

#include <cmath>
#include <filesystem>
#include <optional>

#include "frontend/io/folder_lock.h"
#include "frontend/train/checkpoint_store.h"
#include "frontend/train/evaluator.h"
#include "frontend/train/job.h"
#include "frontend/train/monitor_report.h"
#include "frontend/train/observations.h"
#include "frontend/train/progress.h"
#include "frontend/train/run_log.h"
#include "frontend/train/run_state.h"
#include "frontend/train/shard_runner.h"

namespace keel::train {

struct Summary {
  RunState state;
  std::string data = {};                   // where the training rows come from, for people
  Evaluation valid, test;                  // of the last weights
  std::optional<Evaluation> best_test;     // of the weights that were best on the validation set
  std::optional<Evaluation> average_test;  // of the average of the last checkpoints
  double first_loss = NAN;                 // of the run's first update, if this process made it
  double train_loss = 0;                   // as in the state
  double seconds = 0;                      // of this process
  double items_per_second = 0;             // of its updates only, without the time of evaluations
  double total_seconds = 0;                // with earlier processes, if the run was interrupted
  int signal = 0;                          // the signal that ended the run early, or 0
  std::string undone = {};  // the measurement that the signal left undone; empty: it left none
  std::string stopped_because = {};  // why it stopped before its last update; empty: it did not
  // The last weights are better on the validation set than the best, but do not count as the best,
  // since no validation was due at that step.
  bool last_is_better = false;
};

struct RunOptions {
  // Where config, metrics, checkpoints and plots go. Empty: the run is only in memory, and nothing
  // is measured at its end; its job has train.on_nonfinite = stop.
  std::filesystem::path folder = {};
  bool resume = false;
  bool quiet = false;
  task::OptionValues facts = {};  // for the table [run] of config.toml: versions, hardware
  Communicator* ranks = nullptr;  // the processes that train together; null: only this one
  Reduction reduction = Reduction::kFixed;
  std::int64_t at_once = 0;               // see Ranks
  std::vector<Observer*> observers = {};  // of rank 0; they outlive the trainer
};

class Trainer {
 public:
  // Loads the data, the test rows too, compiles the step and locks the folder; a new run begins
  // with a checkpoint. Throws the errors of the data; Error{kUsage} when the batches do not fit the
  // data, and when a new run's folder already holds a run; Error{kIo} when another process works in
  // the folder; when resuming, also the errors of the run's files.
  Trainer(Backend& backend, const Job& job, const RunOptions& options);

  // Whether the run that is resumed has ended as the job asks for, and has its result.json. run()
  // would measure it again; it then writes nothing.
  bool has_finished() const { return has_finished_; }

  // Trains to the end, to an early stop or to a signal; each of these ends with a checkpoint.
  // Throws Error{kDiverged} naming the first node whose value is not finite, if the run has to stop
  // there (OnNonFinite), and if no update or no measurement at the end was finite; earlier
  // checkpoints stay. result.json says how the run ended, unless a signal ended it.
  Summary run();

  // The number of updates of the whole run, unless it stops early.
  std::int64_t total_steps() const { return steps_->total_steps(); }
  // The present parameters and states.
  Variables& variables() { return variables_; }

 private:
  // Whether this is the rank that writes the run's files and shows its progress.
  bool writes() const { return has_folder() && ranks_.rank() == 0 && !has_finished_; }
  bool has_folder() const { return !folder_.path.empty(); }
  void open_log(const RunOptions& options);
  void warn(const std::string& text);
  void start();
  void resume();
  void take_scheduled_of_earlier();
  // Throws Error{kBadInput} if a rank has drifted away from the others.
  void expect_same_state(const io::TensorFile& content);
  void train();
  void run_step();
  ObservedUpdate observed(const StepPlace& place);
  // Does what is due at the end of an epoch or of an update, once the state has reached it.
  void finish_step();
  // The measurements that are due now.
  std::vector<task::Split> due() const;
  // Closes the epoch if it is over, and notes all that is due as undone.
  void begin_due();
  // Makes the measurements that are undone, and the checkpoint if one is due.
  void finish_due();
  bool is_scheduled() const;
  // Waits for the `waits` oldest results, and takes in all that have arrived.
  void take_results(std::int64_t waits);
  void take_all_results() { take_results(std::numeric_limits<std::int64_t>::max()); }
  void close_epoch();
  void take_non_finite(const StepResult& result);
  // Thrown when a non-finite step needs a rollback: it may be found wherever results are taken in,
  // and the rollback ends all work in progress there.
  struct NonFiniteStep {
    StepResult result;
    std::string where;
  };
  static std::string text(const NonFiniteStep& found);
  [[noreturn]] void stop_at(const NonFiniteStep& found, const std::string& why);
  void roll_back(const NonFiniteStep& cause);
  void log_non_finite(const NonFiniteStep& found, std::string_view action, std::int64_t skipped);
  void validate();
  bool is_best(const Evaluation& valid) const;
  void expect_best() const;
  void test();
  // An evaluation whose time is added to `spent_`.
  Evaluation measure(task::Stream& rows);
  // Whether and by which signal the run is to end.
  int signal() const { return summary_.signal != 0 ? summary_.signal : steps_->signal(); }
  void interrupt(const Interrupted& by, std::string undone);
  std::unique_ptr<task::Stream> test_rows() const;
  void report_skipped();
  // Saves a checkpoint that the recipe asks for; save() saves any.
  void save_scheduled();
  void save();
  void store(const io::TensorFile& content, bool is_best);
  io::TensorFile checkpoint() {
    return to_checkpoint(state_, job_, variables_, &steps_->carries());
  }
  std::vector<std::int64_t> kept() const;
  void show_progress(const StepResult& result);
  ToDo to_do(std::int64_t step, std::int64_t epoch) const;
  double items_per_second() const;
  std::string place_text() const;
  std::string train_loss_text() const;
  Summary summarize();
  void measure_end();
  void measure_average();
  void expect_finite_end() const;
  void log_summary();
  std::string why_early() const;
  Evaluation test_weights(const io::TensorFile& file, const std::string& where);
  bool is_done() const;
  bool is_stale() const;  // no better evaluation for `patience` evaluations
  bool is_slow() const;   // the learning rate has fallen to stop_min_lr

  Backend& backend_;
  const Job& job_;
  OneRank one_;
  Communicator& ranks_;
  bool has_finished_ = false;  // before all members that ask writes()
  RunFolder folder_;
  std::unique_ptr<io::FolderLock> lock_;
  std::unique_ptr<task::Stream> train_rows_, valid_rows_;
  Variables variables_;
  std::unique_ptr<Steps> steps_;
  Evaluator evaluator_;
  Progress progress_;
  MonitorReport watched_;
  CheckpointStore store_;
  std::unique_ptr<RunLog> log_;
  Observations observations_;
  RunState state_;  // after all steps that were started; epoch_loss: of the results taken in
  std::int64_t saved_step_ = -1, compared_step_ = -1;
  Summary summary_;
  std::int64_t first_step_ = 0;  // of this process
  double items_ = 0;             // trained on by this process
  Spent spent_;                  // by this process
  std::chrono::steady_clock::time_point start_;
};

}  // namespace keel::train

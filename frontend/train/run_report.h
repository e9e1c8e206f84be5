// The report of a run in progress: lines on the terminal, logs, plots, and the outcome.
#pragma once

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/train/live_run.h"
#include "frontend/train/monitor_report.h"
#include "frontend/train/progress.h"
#include "frontend/train/run_log.h"

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

// An update that was not finite.
struct NonFiniteStep {
  StepResult result;
  std::string where;  // its first value that is not finite

  std::string text() const;
};

class RunReport {
 public:
  RunReport(const LiveRun& run, bool quiet);

  // Opens the files of the run's folder, in the rank that writes them. Drops the lines after
  // `resumed_at`, in a new run all lines.
  void open(const task::OptionValues& facts, std::optional<std::int64_t> resumed_at);
  void line(const std::string& text) { progress_.line(text); }
  void warn(const std::string& text);
  // Says which rows training leaves out.
  void skipped_rows();
  // The time of updates counts from here on.
  void begin();
  void update(const StepResult& result);
  void epoch() { log_->epoch(run_.state.step, run_.state.epoch, run_.state.train_loss); }
  // Shows how far an evaluation is: `done` of `of` batches (Evaluator::Tell).
  void evaluating(std::int64_t done, std::int64_t of) {
    progress_.evaluation(place_text(), done, of);
  }
  // Leaves the time of an evaluation out of that of updates.
  void evaluated(double seconds);
  void validated(const Evaluation& valid, bool is_best);
  void tested(const Evaluation& test);
  void non_finite(const NonFiniteStep& found, std::string_view action, std::int64_t skipped);
  // Returns when everything that was logged is on the disk.
  void sync() { log_->sync(); }

  // At the end of training: fills in what the clock says, and draws the plots.
  void conclude(Summary& summary);
  // The time in seconds, with that of earlier processes.
  double total_seconds() const { return log_->seconds(); }
  // Logs the measurements at the end.
  void finish(const Summary& summary);
  void diverge(std::string_view message);
  std::string place_text() const;

 private:
  std::string train_loss_text() const;
  ToDo to_do(std::int64_t step, std::int64_t epoch) const;
  double items_per_second() const;

  const LiveRun& run_;
  Progress progress_;
  MonitorReport watched_;
  std::unique_ptr<RunLog> log_;
  std::int64_t first_step_ = 0;  // of this process
  double items_ = 0;             // trained on by this process
  Spent spent_;                  // by this process
  std::chrono::steady_clock::time_point start_;
};

}  // namespace keel::train

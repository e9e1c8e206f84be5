// The training loop: steps, evaluations, early stopping, signals. Its checkpoints and what it shows
// and writes down are objects of their own.
#pragma once

#include <limits>
#include <optional>

#include "frontend/train/evaluator.h"
#include "frontend/train/observations.h"
#include "frontend/train/run_checkpoints.h"
#include "frontend/train/run_report.h"

namespace keel::train {

class Trainer {
 public:
  // Loads the data, the test rows too, compiles the step and locks the folder; a new run begins
  // with a checkpoint. Throws the errors of the data; Error{kUsage} when the batches do not fit the
  // data, and when a new run's folder already holds a run; Error{kIo} when another process works in
  // the folder; when resuming, also the errors of the run's files.
  Trainer(Backend& backend, const Job& job, const RunOptions& options);

  // Whether the run that is resumed has ended as the job asks for, and has its result.json. run()
  // would measure it again; it then writes nothing.
  bool has_finished() const { return run_.has_finished; }

  // Trains to the end, to an early stop or to a signal; each of these ends with a checkpoint.
  // Throws Error{kDiverged} naming the first node whose value is not finite, if the run has to stop
  // there (OnNonFinite), and if no update or no measurement at the end was finite; earlier
  // checkpoints stay. result.json says how the run ended, unless a signal ended it.
  Summary run();

  // The number of updates of the whole run, unless it stops early.
  std::int64_t total_steps() const { return run_.steps->total_steps(); }
  // The present parameters and states.
  Variables& variables() { return run_.variables; }

 private:
  // The update to roll back from, if one is found where results are taken in. It ends all work in
  // progress, so every caller returns it at once.
  using Rollback = std::optional<NonFiniteStep>;

  // Says so where another backend than before continues the run.
  void warn_of_other_backend(const std::string& backend);
  void train();
  // Trains to where the run ends or has to roll back. `is_late`: first makes the measurements that
  // are undone.
  [[nodiscard]] Rollback train_on(bool is_late);
  [[nodiscard]] Rollback run_step();
  // Waits for the `waits` oldest results, and takes in all that have arrived.
  [[nodiscard]] Rollback take_results(std::int64_t waits);
  [[nodiscard]] Rollback take_all_results() {
    return take_results(std::numeric_limits<std::int64_t>::max());
  }
  void take_finite(const StepResult& result);
  [[nodiscard]] Rollback take_non_finite(const StepResult& result);
  [[noreturn]] void stop_at(const NonFiniteStep& found, const std::string& why);

  // Does what is due at the end of an epoch or of an update, once the state has reached it.
  [[nodiscard]] Rollback finish_step();
  // The measurements that are due now.
  std::vector<task::Split> due() const;
  // Closes the epoch if it is over, and notes all that is due as undone.
  void begin_due();
  // Makes the measurements that are undone, and the checkpoint if one is due.
  [[nodiscard]] Rollback finish_due();
  bool is_scheduled() const;
  void close_epoch();
  void validate();
  bool is_best(const Evaluation& valid) const;
  void save();
  // An evaluation whose time the report knows.
  Evaluation measure(task::Stream& rows);
  // Whether and by which signal the run is to end.
  int signal() const { return summary_.signal != 0 ? summary_.signal : run_.steps->signal(); }
  void interrupt(const Interrupted& by, std::string undone);

  Summary summarize();
  void measure_end();
  void measure_average();
  void expect_finite_end() const;
  std::string why_early() const;
  Evaluation test_weights(const io::TensorFile& file, const std::string& where);

  LiveRun run_;
  Evaluator evaluator_;
  RunReport report_;
  RunCheckpoints checkpoints_;
  Observations observations_;
  Summary summary_;
};

}  // namespace keel::train

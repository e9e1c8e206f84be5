// The measurements and checkpoints that are due after an update or an epoch.
#include <algorithm>
#include <cmath>

#include "frontend/train/trainer.h"

namespace keel::train {

Trainer::Rollback Trainer::finish_step() {
  if (run_.is_epoch_over()) {  // its loss is that of all its updates
    if (Rollback found = take_all_results()) return found;
  }
  begin_due();
  return finish_due();
}

void Trainer::begin_due() {
  if (run_.is_epoch_over()) close_epoch();
  run_.state.undone = std::ssize(due());
}

void Trainer::close_epoch() {
  RunState& state = run_.state;
  state.train_loss = state.epoch_loss / state.epoch_items;
  ++state.epoch;
  state.batch = 0;
  state.epoch_loss = state.epoch_items = 0;
  report_.epoch();
}

std::vector<task::Split> Trainer::due() const {
  const TrainOptions& options = run_.job.train();
  const RunState& state = run_.state;
  const auto is_due = [&](const Period& period) {
    const bool ends_epoch = state.batch == 0;
    return period.falls_on(PeriodUnit::kUpdates, state.step) ||
           (ends_epoch && period.falls_on(PeriodUnit::kEpochs, state.epoch));
  };
  std::vector<task::Split> splits;
  if (is_due(options.eval_every)) splits.push_back(task::Split::kValid);
  if (is_due(options.test_every)) splits.push_back(task::Split::kTest);
  return splits;
}

// An interruption leaves in RunState::undone what a resumed run has to make up for. That may be
// more than is due if the periods were changed meanwhile.
Trainer::Rollback Trainer::finish_due() {
  const std::vector<task::Split> splits = due();
  std::int64_t& undone = run_.state.undone;
  undone = std::min(undone, std::ssize(splits));
  if (undone > 0 || is_scheduled()) {  // an update that diverged is found before anything is kept
    if (Rollback found = take_all_results()) return found;
  }
  while (undone > 0) {
    const task::Split split = splits[splits.size() - std::size_t(undone)];
    split == task::Split::kValid ? validate() : report_.tested(measure(*run_.test_rows()));
    --undone;
    checkpoints_.outdate();  // what was saved of this step knows nothing of it
  }
  if (is_scheduled()) {
    run_.state.schedule(run_.job.train().keep_checkpoints);
    save();
  }
  return std::nullopt;
}

bool Trainer::is_scheduled() const {
  const RunState& state = run_.state;
  const std::int64_t every = run_.job.train().checkpoint_every;
  return state.batch == 0 || state.best_step == state.step ||
         (every > 0 && state.step % every == 0);
}

Evaluation Trainer::measure(task::Stream& rows) {
  checkpoints_.expect_same_ranks();
  const auto start = std::chrono::steady_clock::now();
  Evaluation result = evaluator_.run(rows);
  report_.evaluated(seconds_since(start));
  return result;
}

bool Trainer::is_best(const Evaluation& valid) const {
  const Measured& metric = valid.metrics.front();
  if (!std::isfinite(valid.loss) || std::isnan(metric.value)) return false;
  const RunState& state = run_.state;
  if (state.best_step < 0) return true;
  return metric.info.higher_is_better ? metric.value > state.best : metric.value < state.best;
}

void Trainer::validate() {
  summary_.valid = measure(*run_.valid_rows);
  RunState& state = run_.state;
  const bool best = is_best(summary_.valid);
  if (best) {
    state.best = summary_.valid.metrics.front().value;
    state.best_step = state.step;
  }
  state.evaluations_since_best = best ? 0 : state.evaluations_since_best + 1;
  report_.validated(summary_.valid, best);
}

// Lines about a step are on the disk before the checkpoint that a run resumes after it.
void Trainer::save() {
  report_.sync();
  observations_.sync();
  checkpoints_.save();
}

}  // namespace keel::train

// The measurements and checkpoints that are due after an update or an epoch.
#include <cmath>

#include "frontend/train/same_ranks.h"
#include "frontend/train/trainer.h"

namespace keel::train {

void Trainer::finish_step() {
  begin_due();
  finish_due();
}

void Trainer::begin_due() {
  if (state_.batch == train_rows_->steps(static_cast<std::uint32_t>(state_.epoch))) close_epoch();
  state_.undone = std::ssize(due());
}

void Trainer::close_epoch() {
  take_all_results();
  state_.train_loss = state_.epoch_loss / state_.epoch_items;
  ++state_.epoch;
  state_.batch = 0;
  state_.epoch_loss = state_.epoch_items = 0;
  log_->epoch(state_.step, state_.epoch, state_.train_loss);
}

std::vector<task::Split> Trainer::due() const {
  const TrainOptions& options = job_.train();
  const auto is_due = [&](const Period& period) {
    const bool ends_epoch = state_.batch == 0;
    return period.falls_on(PeriodUnit::kUpdates, state_.step) ||
           (ends_epoch && period.falls_on(PeriodUnit::kEpochs, state_.epoch));
  };
  std::vector<task::Split> splits;
  if (is_due(options.eval_every)) splits.push_back(task::Split::kValid);
  if (is_due(options.test_every)) splits.push_back(task::Split::kTest);
  return splits;
}

// An interruption leaves in state_.undone what a resumed run has to make up for. That may be more
// than is due if the periods were changed meanwhile.
void Trainer::finish_due() {
  const std::vector<task::Split> splits = due();
  state_.undone = std::min(state_.undone, std::ssize(splits));
  while (state_.undone > 0) {
    const task::Split split = splits[splits.size() - std::size_t(state_.undone)];
    split == task::Split::kValid ? validate() : test();
    --state_.undone;
    saved_step_ = -1;  // what was saved of this step knows nothing of it
  }
  if (is_scheduled()) save_scheduled();
}

bool Trainer::is_scheduled() const {
  const std::int64_t every = job_.train().checkpoint_every;
  return state_.batch == 0 || state_.best_step == state_.step ||
         (every > 0 && state_.step % every == 0);
}

// Processors that compute otherwise, and faults of memory, make a rank drift.
void Trainer::expect_same_state(const io::TensorFile& content) {
  if (compared_step_ == state_.step) return;
  const std::string has = fmt::format("has another state after step {}", state_.step);
  expect_same_content(ranks_, content, has);
  compared_step_ = state_.step;
}

Evaluation Trainer::measure(task::Stream& rows) {
  take_all_results();
  if (ranks_.size() > 1) expect_same_state(checkpoint());
  const auto start = std::chrono::steady_clock::now();
  Evaluation result = evaluator_.run(rows);
  spent_.evaluating += seconds_since(start);
  ++spent_.evaluations;
  return result;
}

void Trainer::test() {
  const Evaluation result = measure(*test_rows());
  log_->evaluation(state_.step, state_.epoch, "test", result);
  progress_.line(fmt::format("{}: test {}", place_text(), train::text(result)));
}

bool Trainer::is_best(const Evaluation& valid) const {
  const Measured& metric = valid.metrics.front();
  if (!std::isfinite(valid.loss) || std::isnan(metric.value)) return false;
  if (state_.best_step < 0) return true;
  return metric.info.higher_is_better ? metric.value > state_.best : metric.value < state_.best;
}

void Trainer::validate() {
  summary_.valid = measure(*valid_rows_);
  log_->evaluation(state_.step, state_.epoch, "valid", summary_.valid);
  const bool best = is_best(summary_.valid);
  if (best) {
    state_.best = summary_.valid.metrics.front().value;
    state_.best_step = state_.step;
  }
  state_.evaluations_since_best = best ? 0 : state_.evaluations_since_best + 1;
  progress_.line(fmt::format("{}: {}, valid {}{}", place_text(), train_loss_text(),
                             train::text(summary_.valid), best ? " (best)" : ""));
}

void Trainer::save_scheduled() {
  take_all_results();  // of steps before the one that a rollback may go back to from now on
  state_.schedule(job_.train().keep_checkpoints);
  save();
}

// A rollback may go back to the start, which nothing else needs.
std::vector<std::int64_t> Trainer::kept() const {
  std::vector<std::int64_t> steps = state_.scheduled;
  const bool rolls_back = job_.train().on_nonfinite == OnNonFinite::kRollback;
  if (!rolls_back && state_.step > 0) std::erase(steps, 0);
  return steps;
}

void Trainer::save() {
  take_all_results();  // a step that diverged is found before anything is kept of it
  saved_step_ = state_.step;
  if (!has_folder()) return;
  log_->sync();
  observations_.sync();
  const io::TensorFile content = checkpoint();
  expect_same_state(content);
  store(content, state_.best_step == state_.step);
}

void Trainer::store(const io::TensorFile& content, bool is_best) {
  if (writes()) store_.save(state_.step, content, is_best, kept());
}

}  // namespace keel::train

#include "frontend/train/trainer.h"

#include <cmath>
#include <utility>

#include "frontend/io/atomic_file.h"
#include "frontend/train/data_print.h"
#include "frontend/train/run_result.h"
#include "frontend/train/same_ranks.h"
#include "frontend/train/signals.h"

namespace keel::train {
namespace {

task::StreamOptions training_options(const TrainOptions& options) {
  return {.batch = options.batch, .shuffle = static_cast<std::uint64_t>(options.seed)};
}

}  // namespace

Trainer::Trainer(Backend& backend, const Job& job, const RunOptions& options)
    : job_(job),
      ranks_(options.ranks ? *options.ranks : one_),
      folder_{options.folder},
      lock_(options.resume && writes() ? lock_run(folder_) : nullptr),
      train_rows_(job.splits().stream(task::Split::kTrain, training_options(job.train()))),
      valid_rows_(job.splits().stream(task::Split::kValid, evaluation_options(job))),
      variables_(backend, static_cast<std::uint64_t>(job.train().seed)),
      steps_(make_steps(backend, variables_, job, *train_rows_, {ranks_, options.reduction})),
      evaluator_(backend, variables_, job, &steps_->arena()),
      progress_(options.quiet || !writes()),
      watched_(steps_->watches(), [this](const std::string& text) { warn(text); }),
      store_(folder_.checkpoints(), static_cast<int>(job.train().keep_checkpoints),
             [this](const std::string& message) { warn(message); }) {
  evaluator_.tell(
      [this](std::int64_t done, std::int64_t of) { progress_.evaluation(place_text(), done, of); });
  evaluator_.share(ranks_);
  test_rows();  // read here: that they are wrong should not be found after the training
  report_left_out();
  state_.data = data_print(*train_rows_, *valid_rows_);
  options.resume ? resume() : start();
  expect_same_content(ranks_, checkpoint(),
                      "begins with another recipe, other data or other weights");
  if (!writes()) {
    log_ = std::make_unique<RunLog>();
    return;
  }
  log_ =
      std::make_unique<RunLog>(folder_, options.resume ? std::optional(state_.step) : std::nullopt);
  const std::string recipe = job.config().to_toml(options.facts);
  io::write_file_atomically(folder_.config(), recipe);
  log_->settings(read_settings(recipe, folder_.config()));
  remove_result(folder_);  // it goes on from here
}

void Trainer::warn(const std::string& text) {
  if (writes()) progress_.warning(text);
}

void Trainer::report_left_out() {
  for (const task::LeftOut& left : train_rows_->left_out()) {
    progress_.line(
        fmt::format("left out in an epoch: {} {}, which {}", left.rows, left.unit, left.why));
  }
}

bool Trainer::is_stale() const {
  const std::int64_t patience = job_.train().patience;
  return patience > 0 && state_.evaluations_since_best >= patience;
}

bool Trainer::is_slow() const {
  const TrainOptions& options = job_.train();
  return options.stop_min_lr > 0 && state_.step >= options.warmup &&
         options.rate(state_.step, steps_->total_steps()) <= options.stop_min_lr;
}

bool Trainer::is_done() const {
  return state_.step >= steps_->total_steps() || is_stale() || is_slow();
}

Summary Trainer::run() {
  const SignalGuard signals;
  start_ = std::chrono::steady_clock::now();
  first_step_ = state_.step;
  try {
    train();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kDiverged) {
      if (writes()) write_divergence(folder_, error.what());
      log_->end(/*finished=*/false);
    }
    throw;
  }
  summary_.signal = steps_->signal();
  return summarize();
}

void Trainer::train() {
  while (true) {
    try {
      while (!is_done() && steps_->signal() == 0) {
        run_step();
        finish_step();
      }
      if (saved_step_ != state_.step) save(false);
      return;
    } catch (const NonFiniteStep& cause) {
      roll_back(cause);
      finish_step();
    }
  }
}

void Trainer::finish_step() {
  const bool ends = state_.batch == train_rows_->steps(static_cast<std::uint32_t>(state_.epoch));
  if (ends) finish_epoch();
  const TrainOptions& options = job_.train();
  if (options.test_every.falls_on(PeriodUnit::kUpdates, state_.step)) test();
  if (options.eval_every.falls_on(PeriodUnit::kUpdates, state_.step) && evaluate()) {
    save_asked(true);
  }
  const std::int64_t every = options.checkpoint_every;
  if (every > 0 && state_.step % every == 0 && saved_step_ != state_.step) save_asked(false);
}

void Trainer::run_step() {
  take_results(steps_->due());
  const StepPlace place{state_.step, state_.epoch, state_.batch};
  steps_->start(place);
  ++state_.step;
  state_.batch += steps_->micro_batches(place);
  take_results(0);
}

void Trainer::take_results(std::int64_t waits) {
  while (const StepResult* result = steps_->next(waits-- > 0)) {
    if (!result->is_finite()) {
      take_non_finite(*result);
      continue;
    }
    if (job_.train().skips()) state_.strikes = 0;
    state_.epoch_loss += result->loss * result->items;
    state_.epoch_items += result->items;
    items_ += result->items;
    watched_.take(result->place.step + 1, result->watched);
    show_progress(*result);
  }
}

ToDo Trainer::to_do(std::int64_t step, std::int64_t epoch) const {
  const TrainOptions& options = job_.train();
  ToDo left{.updates = steps_->total_steps() - step};
  for (const Period& period : {options.eval_every, options.test_every}) {
    left.evaluations +=
        period.times(steps_->total_epochs(), steps_->total_steps()) - period.times(epoch, step);
  }
  // At the end: validation and test of the last weights, test of the best and of an average.
  left.evaluations += options.average_last > 1 ? 4 : 3;
  return left;
}

double Trainer::items_per_second() const {
  return spent_.updating > 0 ? items_ / spent_.updating : 0;
}

void Trainer::show_progress(const StepResult& result) {
  const std::int64_t step = result.place.step + 1, epoch = result.place.epoch;
  spent_.updating = seconds_since(start_) - spent_.evaluating;
  spent_.updates = step - first_step_;
  progress_.update({.step = step,
                    .total = steps_->total_steps(),
                    .epoch = epoch + 1,
                    .loss = result.loss,
                    .items_per_second = items_per_second(),
                    .item_unit = job_.task().item_unit(),
                    .spent = spent_,
                    .to_do = to_do(step, epoch)});
  if (step % job_.train().log_every != 0) return;
  log_->step({step, epoch, result.loss, result.lr, result.grad_norm, items_per_second(),
              watched_.largest()});
}

// The epoch that goes on, from 1 on; at its end, the one that is over.
std::string Trainer::place_text() const {
  const bool is_within = state_.batch > 0 || state_.epoch == 0;
  return fmt::format("epoch {}, step {}", state_.epoch + (is_within ? 1 : 0), state_.step);
}

std::string Trainer::train_loss_text() const {
  const bool is_within = state_.batch > 0;
  const double loss = is_within ? state_.epoch_loss / state_.epoch_items : state_.train_loss;
  if (std::isnan(loss)) return "no train loss";  // no update was finite
  return fmt::format("train loss {:.4f}{}", loss, is_within ? " so far" : "");
}

void Trainer::finish_epoch() {
  take_all_results();
  state_.train_loss = state_.epoch_loss / state_.epoch_items;
  ++state_.epoch;
  state_.batch = 0;
  state_.epoch_loss = state_.epoch_items = 0;
  log_->epoch(state_.step, state_.epoch, state_.train_loss);
  const TrainOptions& options = job_.train();
  const bool due = options.eval_every.falls_on(PeriodUnit::kEpochs, state_.epoch);
  const bool is_best = due && evaluate();
  if (options.test_every.falls_on(PeriodUnit::kEpochs, state_.epoch)) test();
  save_asked(is_best);
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

bool Trainer::is_best(const Measured& metric) const {
  if (state_.best_step < 0) return !std::isnan(metric.value);
  return metric.info.higher_is_better ? metric.value > state_.best : metric.value < state_.best;
}

// Processors that compute otherwise, and faults of memory, make a rank drift.
void Trainer::expect_same_state(const io::TensorFile& content) {
  if (compared_step_ == state_.step) return;
  const std::string has = fmt::format("has another state after step {}", state_.step);
  expect_same_content(ranks_, content, has);
  compared_step_ = state_.step;
}

bool Trainer::evaluate() {
  summary_.valid = measure(*valid_rows_);
  log_->evaluation(state_.step, state_.epoch, "valid", summary_.valid);
  const Measured& first = summary_.valid.metrics.front();
  const bool best = is_best(first);
  if (best) {
    state_.best = first.value;
    state_.best_step = state_.step;
  }
  state_.evaluations_since_best = best ? 0 : state_.evaluations_since_best + 1;
  progress_.line(fmt::format("{}: {}, valid {}{}", place_text(), train_loss_text(),
                             train::text(summary_.valid), best ? " (best)" : ""));
  return best;
}

void Trainer::save_asked(bool is_best) {
  take_all_results();  // of steps before the one that a rollback may go back to from now on
  state_.anchor = state_.step;
  save(is_best);
}

std::int64_t Trainer::also_kept() const {
  return job_.train().on_nonfinite == OnNonFinite::kRollback ? state_.anchor : -1;
}

void Trainer::save(bool is_best) {
  take_all_results();  // a step that diverged is found before anything is kept of it
  log_->sync();
  const io::TensorFile content = checkpoint();
  expect_same_state(content);
  store(content, is_best);
  saved_step_ = state_.step;
}

void Trainer::store(const io::TensorFile& content, bool is_best) {
  if (writes()) store_.save(state_.step, content, is_best, also_kept());
}

}  // namespace keel::train

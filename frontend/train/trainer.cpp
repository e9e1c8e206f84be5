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
    : backend_(backend),
      job_(job),
      ranks_(options.ranks ? *options.ranks : one_),
      folder_{options.folder},
      lock_(options.resume && writes() ? lock_run(folder_) : nullptr),
      train_rows_(job.splits().stream(task::Split::kTrain, training_options(job.train()))),
      valid_rows_(job.splits().stream(task::Split::kValid, evaluation_options(job))),
      variables_(backend, static_cast<std::uint64_t>(job.train().seed)),
      steps_(make_steps(backend, variables_, job, *train_rows_,
                        {ranks_, options.reduction, options.at_once})),
      evaluator_(backend, variables_, job, &steps_->arena()),
      progress_(options.quiet || !writes()),
      watched_(steps_->monitors(), [this](const std::string& text) { warn(text); }),
      store_(folder_.checkpoints(), [this](const std::string& message) { warn(message); }),
      observations_(ranks_.rank() == 0 ? options.observers : std::vector<Observer*>{}) {
  evaluator_.tell(
      [this](std::int64_t done, std::int64_t of) { progress_.evaluation(place_text(), done, of); });
  evaluator_.share(ranks_);
  evaluator_.heed([] { return SignalGuard::received(); });
  test_rows();  // read here: that they are wrong should not be found after the training
  report_skipped();
  state_.data = data_print(*train_rows_, *valid_rows_);
  options.resume ? resume() : start();
  expect_same_facts(ranks_, {{"set of data", state_.data}});
  expect_same_content(ranks_, checkpoint(), "begins with another recipe or other weights");
  log_ = std::make_unique<RunLog>();
  if (writes()) open_log(options);
}

void Trainer::open_log(const RunOptions& options) {
  log_ =
      std::make_unique<RunLog>(folder_, options.resume ? std::optional(state_.step) : std::nullopt);
  const std::string recipe = job_.config().to_toml(options.facts);
  io::write_file_atomically(folder_.config(), recipe);
  log_->settings(read_settings(recipe, folder_.config()));
  observations_.open(folder_, options.resume ? std::optional(state_.step) : std::nullopt);
  remove_result(folder_);  // it goes on from here
}

void Trainer::warn(const std::string& text) {
  if (writes()) progress_.warning(text);
}

void Trainer::report_skipped() {
  for (const task::Skipped& left : train_rows_->skipped()) {
    progress_.line(fmt::format("dropping {} {} per epoch ({})", left.rows, left.unit, left.why));
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
    return summarize();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kDiverged) {
      if (writes()) write_divergence(folder_, error.what());
      log_->end(/*finished=*/false);
    }
    throw;
  }
}

void Trainer::train() {
  bool has_due = state_.undone > 0;
  while (true) {
    try {
      if (std::exchange(has_due, false)) finish_due();
      while (!is_done() && signal() == 0) {
        run_step();
        finish_step();
      }
      if (saved_step_ != state_.step) save();
      summary_.signal = signal();
      return;
    } catch (const NonFiniteStep& cause) {
      roll_back(cause);
      begin_due();
      has_due = true;
    } catch (const Interrupted& by) {
      const task::Split next = due()[due().size() - std::size_t(state_.undone)];
      interrupt(by, next == task::Split::kValid ? "the validation" : "the test");
      save();
      return;
    }
  }
}

void Trainer::interrupt(const Interrupted& by, std::string undone) {
  summary_.signal = by.signal;
  summary_.undone = std::move(undone);
}

void Trainer::run_step() {
  take_results(steps_->due());
  const StepPlace place{state_.step, state_.epoch, state_.batch};
  const ObservedUpdate update = observed(place);
  const bool is_looked_at = observations_.choose(update);
  if (is_looked_at) take_all_results();  // an update that diverged is found before the next is seen
  observations_.before(update);
  steps_->start(place);
  ++state_.step;
  state_.batch += steps_->micro_batches(place);
  take_results(is_looked_at ? std::numeric_limits<std::int64_t>::max() : 0);
}

ObservedUpdate Trainer::observed(const StepPlace& place) {
  return {backend_,        variables_,        job_,  *train_rows_,
          steps_->arena(), steps_->carries(), place, steps_->total_steps()};
}

void Trainer::take_results(std::int64_t waits) {
  while (const StepResult* result = steps_->next(waits-- > 0)) {
    if (!result->is_finite()) {
      take_non_finite(*result);
      continue;
    }
    if (job_.train().skips()) state_.consecutive_non_finite = 0;
    if (result->place.step == 0) summary_.first_loss = result->loss;
    state_.epoch_loss += result->loss * result->items;
    state_.epoch_items += result->items;
    items_ += result->items;
    if (observations_.look_at(result->place)) {
      observations_.after(observed(result->place), *result);
    }
    watched_.take(result->place.step + 1, result->monitored);
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

}  // namespace keel::train

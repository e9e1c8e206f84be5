#include "frontend/train/run_report.h"

#include "frontend/io/atomic_file.h"
#include "frontend/train/run_result.h"

namespace keel::train {
namespace {

std::string norm_of(const Job& job) {
  for (const OptionFact& fact : job.config().facts()) {
    if (fact.name == "model.norm") return fact.value;
  }
  return "none";
}

RunLog::Subject plot_subject(const Job& job, const task::Stream& train, const task::Stream& valid) {
  const std::string norm = norm_of(job);
  return {fmt::format("{} {} on {}", job.task().name(),
                      norm == "none" ? "without a norm" : "with " + norm,
                      data_name(job.data().source, train.source())),
          fmt::format("Training: {} rows ({}). Validation: {} rows. Seed {}.", train.rows(),
                      train.source(), valid.rows(), job.train().seed)};
}

}  // namespace

std::string NonFiniteStep::text() const {
  return fmt::format("step {}: loss {}, gradient norm {}; first not finite: {}", result.place.step,
                     result.loss, result.grad_norm, where);
}

RunReport::RunReport(const LiveRun& run, bool quiet)
    : run_(run),
      progress_(quiet || !run.writes()),
      watched_(run.steps->monitors(), [this](const std::string& text) { warn(text); }) {}

void RunReport::open(const task::OptionValues& facts, std::optional<std::int64_t> resumed_at) {
  if (!run_.writes()) {
    log_ = std::make_unique<RunLog>();
    return;
  }
  log_ = std::make_unique<RunLog>(run_.folder, resumed_at);
  const std::string recipe = run_.job.config().to_toml(facts);
  io::write_file_atomically(run_.folder.config(), recipe);
  log_->settings(read_settings(recipe, run_.folder.config()));
}

void RunReport::warn(const std::string& text) {
  if (run_.writes()) progress_.warning(text);
}

void RunReport::skipped_rows() {
  for (const task::Skipped& left : run_.train_rows->skipped()) {
    line(fmt::format("dropping {} {} per epoch ({})", left.rows, left.unit, left.why));
  }
}

void RunReport::begin() {
  start_ = std::chrono::steady_clock::now();
  first_step_ = run_.state.step;
}

ToDo RunReport::to_do(std::int64_t step, std::int64_t epoch) const {
  const TrainOptions& options = run_.job.train();
  const Steps& steps = *run_.steps;
  ToDo left{.updates = steps.total_steps() - step};
  for (const Period& period : {options.eval_every, options.test_every}) {
    left.evaluations +=
        period.times(steps.total_epochs(), steps.total_steps()) - period.times(epoch, step);
  }
  // At the end: validation and test of the last weights, test of the best and of an average.
  left.evaluations += options.average_last > 1 ? 4 : 3;
  return left;
}

double RunReport::items_per_second() const {
  return spent_.updating > 0 ? items_ / spent_.updating : 0;
}

void RunReport::update(const StepResult& result) {
  items_ += result.items;
  const std::int64_t step = result.place.step + 1, epoch = result.place.epoch;
  watched_.take(step, result.monitored);
  spent_.updating = seconds_since(start_) - spent_.evaluating;
  spent_.updates = step - first_step_;
  progress_.update({.step = step,
                    .total = run_.steps->total_steps(),
                    .epoch = epoch + 1,
                    .loss = result.loss,
                    .items_per_second = items_per_second(),
                    .item_unit = run_.job.task().item_unit(),
                    .spent = spent_,
                    .to_do = to_do(step, epoch)});
  if (step % run_.job.train().log_every != 0) return;
  log_->step({step, epoch, result.loss, result.lr, result.grad_norm, items_per_second(),
              watched_.largest()});
}

void RunReport::evaluated(double seconds) {
  spent_.evaluating += seconds;
  ++spent_.evaluations;
}

void RunReport::validated(const Evaluation& valid, bool is_best) {
  log_->evaluation(run_.state.step, run_.state.epoch, "valid", valid);
  line(fmt::format("{}: {}, valid {}{}", place_text(), train_loss_text(), text(valid),
                   is_best ? " (best)" : ""));
}

void RunReport::tested(const Evaluation& test) {
  log_->evaluation(run_.state.step, run_.state.epoch, "test", test);
  line(fmt::format("{}: test {}", place_text(), text(test)));
}

void RunReport::non_finite(const NonFiniteStep& found, std::string_view action,
                           std::int64_t skipped) {
  const StepResult& result = found.result;
  log_->nonfinite({result.place.step + 1, result.place.epoch, action, result.loss, result.grad_norm,
                   skipped, found.where});
  if (skipped == 0) return;  // the error says it
  line(fmt::format("{}; {}: updates left out: {}", found.text(), action, skipped));
}

void RunReport::conclude(Summary& summary) {
  summary.seconds = seconds_since(start_);
  spent_.updating = summary.seconds - spent_.evaluating;
  summary.items_per_second = items_per_second();
  log_->plot(plot_subject(run_.job, *run_.train_rows, *run_.valid_rows), run_.job.task().metrics());
}

// The measurements after the end of training are not part of the run's curves, which another
// process may continue; TensorBoard shows them beside the curves.
void RunReport::finish(const Summary& summary) {
  const RunState& state = run_.state;
  log_->result(state.step, "test", summary.test);
  if (summary.best_test) {
    const bool was_measured = state.best_step >= 0;
    log_->result(was_measured ? state.best_step : state.step, "test_best", *summary.best_test);
  }
  if (summary.average_test) log_->result(state.step, "test_averaged", *summary.average_test);
  log_->end(/*finished=*/true);
  if (run_.writes()) write_result(run_.folder, summary);
}

void RunReport::diverge(std::string_view message) {
  if (run_.writes()) write_divergence(run_.folder, message);
  log_->end(/*finished=*/false);
}

// The epoch that goes on, from 1 on; at its end, the one that is over.
std::string RunReport::place_text() const {
  const RunState& state = run_.state;
  const bool is_within = state.batch > 0 || state.epoch == 0;
  return fmt::format("epoch {}, step {}", state.epoch + (is_within ? 1 : 0), state.step);
}

std::string RunReport::train_loss_text() const {
  const RunState& state = run_.state;
  const bool is_within = state.batch > 0;
  const double loss = is_within ? state.epoch_loss / state.epoch_items : state.train_loss;
  if (std::isnan(loss)) return "no train loss";  // no update was finite
  return fmt::format("train loss {:.4f}{}", loss, is_within ? " so far" : "");
}

}  // namespace keel::train

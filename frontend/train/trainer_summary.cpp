// The outcome of a run: the measurements at its end.

#include "frontend/train/first_values.h"
#include "frontend/train/run_result.h"
#include "frontend/train/trainer.h"

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

std::unique_ptr<task::Stream> Trainer::test_rows() const {
  return job_.splits().stream(task::Split::kTest, evaluation_options(job_));
}

Evaluation Trainer::test_weights(const io::TensorFile& file, const std::string& where) {
  load_variables(file, where, variables_);
  return evaluator_.run(*test_rows());
}

std::string Trainer::why_early() const {
  const TrainOptions& options = job_.train();
  if (state_.step >= steps_->total_steps()) return "";
  if (is_stale()) {
    return fmt::format("no better valid {} in {} evaluations (train.patience = {})",
                       job_.task().metrics().front().name, state_.evaluations_since_best,
                       options.patience);
  }
  if (!is_slow()) return "";
  return fmt::format("the learning rate has fallen to {:.3g} (train.stop_min_lr = {:.3g})",
                     options.rate(state_.step, steps_->total_steps()), options.stop_min_lr);
}

// The measurements after the end of training are not part of the run's curves, which another
// process may continue; TensorBoard shows them beside the curves.
void Trainer::log_summary() {
  log_->result(state_.step, "test", summary_.test);
  if (summary_.best_test) {
    const bool was_measured = state_.best_step >= 0;
    log_->result(was_measured ? state_.best_step : state_.step, "test_best", *summary_.best_test);
  }
  if (summary_.average_test) log_->result(state_.step, "test_averaged", *summary_.average_test);
  log_->end(/*finished=*/true);
}

Summary Trainer::summarize() {
  ranks_.wait_for_all();  // until the last checkpoint is written, which all read
  summary_.state = state_;
  summary_.data = train_rows_->source();
  summary_.train_loss = state_.train_loss;
  summary_.seconds = seconds_since(start_);
  spent_.updating = summary_.seconds - spent_.evaluating;
  summary_.items_per_second = items_per_second();
  summary_.stopped_because = why_early();
  log_->plot(plot_subject(job_, *train_rows_, *valid_rows_), job_.task().metrics());
  if (summary_.signal != 0 || !has_folder()) return summary_;
  check(state_.skipped == 0 || state_.skipped < state_.step, ErrorKind::kDiverged,
        "all {} updates were left out: the weights are the first ones", state_.step);
  if (!summary_.stopped_because.empty()) {
    progress_.line(fmt::format("stopped early at {}: {}", place_text(), summary_.stopped_because));
  }
  try {
    measure_end();
  } catch (const Interrupted& by) {
    interrupt(by, "the measurements at the end");
    return summary_;
  }
  expect_finite_end();
  const std::string first_values = first_value_warning(job_, state_.step - state_.skipped);
  if (!first_values.empty()) warn(first_values);
  summary_.total_seconds = log_->seconds();
  log_summary();
  if (writes()) write_result(folder_, summary_);
  return summary_;
}

// The last weights are measured though no period falls on them. That leaves the run's state as it
// is, for a run that goes on from here is to be as one that never stopped; where no weights were
// ever measured before, these are the best there are.
void Trainer::measure_end() {
  summary_.valid = evaluator_.run(*valid_rows_);
  summary_.test = evaluator_.run(*test_rows());
  const io::TensorFile last = checkpoint();
  if (state_.best_step < 0) {
    store(last, true);
    summary_.best_test = summary_.test;
  } else {
    summary_.last_is_better = is_best(summary_.valid);
    const auto path = store_.best_path();
    summary_.best_test =
        test_weights(io::read_safetensors(path, {.require_checksums = true}), path);
  }
  if (job_.train().average_last > 1) measure_average();
  load_variables(last, "memory", variables_);
}

// A checkpoint saved by an interruption is not part of an average, because the run must equal one
// without an interruption; the checkpoint at the run's end is part of it.
void Trainer::measure_average() {
  std::vector<std::int64_t> steps = state_.scheduled;
  std::erase(steps, 0);
  if (steps.empty() || steps.back() != state_.step) steps.push_back(state_.step);
  const auto most = std::min(std::ssize(steps), job_.train().average_last);
  std::vector<std::filesystem::path> paths;
  for (auto step = steps.rbegin(); std::ssize(paths) < most; ++step) {
    paths.push_back(store_.path(*step));
  }
  const io::TensorFile average = average_checkpoints(paths);
  progress_.line(fmt::format("average of {} checkpoints, of {} asked for: {}", paths.size(),
                             job_.train().average_last, average.metadata.at("average_of")));
  if (writes()) io::write_safetensors(folder_.average(), average);
  summary_.average_test = test_weights(average, folder_.average());
}

void Trainer::expect_finite_end() const {
  const auto expect = [](const char* what, const std::optional<Evaluation>& e) {
    check(!e || e->is_finite(), ErrorKind::kDiverged, "the loss of {} is {}: the run has no result",
          what, e ? e->loss : 0);
  };
  expect("the last weights on the validation set", summary_.valid);
  expect("the last weights on the test set", summary_.test);
  expect("the best weights on the test set", summary_.best_test);
  expect("the averaged weights on the test set", summary_.average_test);
}

}  // namespace keel::train

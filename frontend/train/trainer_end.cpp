// The measurements at the end of a run, and its outcome.
#include "frontend/train/first_values.h"
#include "frontend/train/trainer.h"

namespace keel::train {

Evaluation Trainer::test_weights(const io::TensorFile& file, const std::string& where) {
  load_variables(file, where, run_.variables);
  return evaluator_.run(*run_.test_rows());
}

std::string Trainer::why_early() const {
  const TrainOptions& options = run_.job.train();
  if (run_.state.step >= total_steps()) return "";
  if (run_.is_stale()) {
    return fmt::format("no better valid {} in {} evaluations (train.patience = {})",
                       run_.job.task().metrics().front().name, run_.state.evaluations_since_best,
                       options.patience);
  }
  if (!run_.is_slow()) return "";
  return fmt::format("the learning rate has fallen to {:.3g} (train.stop_min_lr = {:.3g})",
                     options.rate(run_.state.step, total_steps()), options.stop_min_lr);
}

Summary Trainer::summarize() {
  const RunState& state = run_.state;
  run_.ranks.wait_for_all();  // until the last checkpoint is written, which all read
  summary_.state = state;
  summary_.data = run_.train_rows->source();
  summary_.train_loss = state.train_loss;
  summary_.stopped_because = why_early();
  report_.conclude(summary_);
  if (summary_.signal != 0 || !run_.has_folder()) return summary_;
  check(state.skipped == 0 || state.skipped < state.step, ErrorKind::kDiverged,
        "all {} updates were left out: the weights are the first ones", state.step);
  if (!summary_.stopped_because.empty()) {
    report_.line(
        fmt::format("stopped early at {}: {}", report_.place_text(), summary_.stopped_because));
  }
  try {
    measure_end();
  } catch (const Interrupted& by) {
    interrupt(by, "the measurements at the end");
    return summary_;
  }
  expect_finite_end();
  const std::string first_values = first_value_warning(run_.job, state.step - state.skipped);
  if (!first_values.empty()) report_.warn(first_values);
  summary_.total_seconds = report_.total_seconds();
  report_.finish(summary_);
  return summary_;
}

// The last weights are measured though no period falls on them. That leaves the run's state as it
// is, for a run that goes on from here is to be as one that never stopped; where no weights were
// ever measured before, these are the best there are.
void Trainer::measure_end() {
  summary_.valid = evaluator_.run(*run_.valid_rows);
  summary_.test = evaluator_.run(*run_.test_rows());
  const io::TensorFile last = checkpoints_.content();
  if (run_.state.best_step < 0) {
    checkpoints_.save_best(last);
    summary_.best_test = summary_.test;
  } else {
    summary_.last_is_better = is_best(summary_.valid);
    summary_.best_test = test_weights(checkpoints_.best(), checkpoints_.best_path());
  }
  if (run_.job.train().average_last > 1) measure_average();
  load_variables(last, "memory", run_.variables);
}

void Trainer::measure_average() {
  const std::vector<std::filesystem::path> files = checkpoints_.to_average();
  const io::TensorFile average = average_checkpoints(files);
  report_.line(fmt::format("average of {} checkpoints, of {} asked for: {}", files.size(),
                           run_.job.train().average_last, average.metadata.at("average_of")));
  if (run_.writes()) io::write_safetensors(run_.folder.average(), average);
  summary_.average_test = test_weights(average, run_.folder.average());
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

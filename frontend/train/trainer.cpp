#include "frontend/train/trainer.h"

#include <cmath>
#include <utility>

#include "frontend/train/data_print.h"
#include "frontend/train/run_result.h"
#include "frontend/train/same_ranks.h"
#include "frontend/train/signals.h"

namespace keel::train {

Trainer::Trainer(Backend& backend, const Job& job, const RunOptions& options)
    : run_(backend, job, options),
      evaluator_(backend, run_.variables, job, &run_.steps->arena()),
      report_(run_, options.quiet),
      checkpoints_(run_, [this](const std::string& message) { report_.warn(message); }),
      observations_(run_.ranks.rank() == 0 ? options.observers : std::vector<Observer*>{}) {
  evaluator_.tell([this](std::int64_t done, std::int64_t of) { report_.evaluating(done, of); });
  evaluator_.share(run_.ranks);
  evaluator_.heed([] { return SignalGuard::received(); });
  run_.test_rows();  // read here: that they are wrong should not be found after the training
  report_.skipped_rows();
  run_.state.data = data_print(*run_.train_rows, *run_.valid_rows);
  if (options.resume) {
    const std::string path = checkpoints_.resume().string();
    if (!has_finished()) {
      report_.line(fmt::format("resumed at step {} from {}", run_.state.step, path));
      warn_of_other_backend(options.backend);
    }
    run_.state.backend = options.backend;
  } else {
    run_.state.backend = options.backend;
    checkpoints_.start();
  }
  expect_same_facts(run_.ranks, {{"set of data", run_.state.data}});
  expect_same_content(run_.ranks, checkpoints_.content(),
                      "begins with another recipe or other weights");
  const auto resumed_at = options.resume ? std::optional(run_.state.step) : std::nullopt;
  report_.open(options.facts, resumed_at);
  if (!run_.writes()) return;
  observations_.open(run_.folder, resumed_at);
  remove_result(run_.folder);  // it goes on from here
}

void Trainer::warn_of_other_backend(const std::string& backend) {
  const std::string& former = run_.state.backend;
  if (former.empty() || backend.empty() || former == backend) return;
  report_.warn(
      fmt::format("the run was computed by {}, and goes on with {}: from now on bits may differ "
                  "from those of a run without an interruption",
                  former, backend));
}

Summary Trainer::run() {
  const SignalGuard signals;
  report_.begin();
  try {
    train();
    return summarize();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kDiverged) report_.diverge(error.what());
    throw;
  }
}

void Trainer::train() {
  bool is_late = run_.state.undone > 0;
  try {
    while (const Rollback cause = train_on(is_late)) {
      const std::int64_t skipped = checkpoints_.roll_back(cause->result);
      report_.non_finite(*cause, "rollback", skipped);
      begin_due();
      is_late = true;
    }
    summary_.signal = signal();
  } catch (const Interrupted& by) {
    const task::Split next = due()[due().size() - std::size_t(run_.state.undone)];
    interrupt(by, next == task::Split::kValid ? "the validation" : "the test");
    save();
  }
}

Trainer::Rollback Trainer::train_on(bool is_late) {
  if (is_late) {
    if (Rollback found = finish_due()) return found;
  }
  while (!run_.is_done() && signal() == 0) {
    if (Rollback found = run_step()) return found;
    if (Rollback found = finish_step()) return found;
  }
  if (checkpoints_.is_saved()) return std::nullopt;
  if (Rollback found = take_all_results()) return found;
  save();
  return std::nullopt;
}

void Trainer::interrupt(const Interrupted& by, std::string undone) {
  summary_.signal = by.signal;
  summary_.undone = std::move(undone);
}

Trainer::Rollback Trainer::run_step() {
  if (Rollback found = take_results(run_.steps->due())) return found;
  const StepPlace place{run_.state.step, run_.state.epoch, run_.state.batch};
  const ObservedUpdate update = run_.observed(place);
  const bool is_looked_at = observations_.choose(update);
  if (is_looked_at) {  // an update that diverged is found before the next is seen
    if (Rollback found = take_all_results()) return found;
  }
  observations_.before(update);
  run_.steps->start(place);
  ++run_.state.step;
  run_.state.batch += run_.steps->micro_batches(place);
  return is_looked_at ? take_all_results() : take_results(0);
}

Trainer::Rollback Trainer::take_results(std::int64_t waits) {
  while (const StepResult* result = run_.steps->next(waits-- > 0)) {
    if (result->is_finite()) {
      take_finite(*result);
    } else if (Rollback found = take_non_finite(*result)) {
      return found;
    }
  }
  return std::nullopt;
}

void Trainer::take_finite(const StepResult& result) {
  RunState& state = run_.state;
  if (run_.job.train().skips()) state.consecutive_non_finite = 0;
  if (result.place.step == 0) summary_.first_loss = result.loss;
  state.epoch_loss += result.loss * result.items;
  state.epoch_items += result.items;
  if (observations_.look_at(result.place)) {
    observations_.after(run_.observed(result.place), result);
  }
  report_.update(result);
}

Trainer::Rollback Trainer::take_non_finite(const StepResult& result) {
  const TrainOptions& options = run_.job.train();
  if (options.skips()) run_.steps->undo();
  const NonFiniteStep found{result, run_.steps->first_not_finite(result)};
  if (options.on_nonfinite == OnNonFinite::kStop) stop_at(found, "");
  if (++run_.state.consecutive_non_finite > options.nonfinite_limit) {
    stop_at(found, fmt::format("; train.nonfinite_limit = {} is used up", options.nonfinite_limit));
  }
  if (!options.skips()) return found;
  ++run_.state.skipped;
  report_.non_finite(found, "skip", 1);
  return std::nullopt;
}

void Trainer::stop_at(const NonFiniteStep& found, const std::string& why) {
  report_.non_finite(found, "stop", 0);
  fail(ErrorKind::kDiverged, "{}{}", found.text(), why);
}

}  // namespace keel::train

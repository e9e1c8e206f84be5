#include "frontend/train/run_checkpoints.h"

#include <algorithm>
#include <utility>

#include "frontend/train/run_result.h"
#include "frontend/train/same_ranks.h"

namespace keel::train {

RunCheckpoints::RunCheckpoints(LiveRun& run, CheckpointStore::Warn warn)
    : run_(run), store_(run.folder.checkpoints(), std::move(warn)) {}

io::TensorFile RunCheckpoints::content() const {
  return to_checkpoint(run_.state, run_.job, run_.variables, &run_.steps->carries());
}

io::TensorFile RunCheckpoints::best() const {
  return io::read_safetensors(best_path(), {.require_checksums = true});
}

// The checkpoint comes before all other files: a run that ends in its first moments can be resumed,
// or has left nothing.
void RunCheckpoints::start() {
  run_.steps->initialize();
  if (run_.writes()) {
    run_.lock = lock_run(run_.folder);
    expect_no_run(run_.folder);
    store_.save(run_.state.step, content(), false);
  }
  saved_step_ = run_.state.step;
}

std::filesystem::path RunCheckpoints::resume() {
  const auto checkpoint = store_.latest();
  check(checkpoint.has_value(), ErrorKind::kBadInput, "{}: no intact checkpoint to resume from",
        run_.folder.checkpoints().string());
  const std::string path = checkpoint->path.string();
  expect_model_of_run(run_.folder, checkpoint->content, path);
  expect_options_of_run(run_.folder, checkpoint->content, path);
  RunState& state = run_.state;
  const std::string data = std::exchange(state.data, {});
  state =
      from_checkpoint(checkpoint->content, path, run_.job, run_.variables, &run_.steps->carries());
  if (state.data.empty()) state.data = data;  // of a version that did not write it
  check(state.data == data, ErrorKind::kBadInput,
        "{}: the data are not those that it was trained on: expected {}; got {}", path, state.data,
        data);
  check(state.step == checkpoint->step, ErrorKind::kBadInput,
        "{}: expected the state after step {}, as its name says, got that after step {}", path,
        checkpoint->step, state.step);
  saved_step_ = state.step;
  if (!checkpoint->content.metadata.contains("scheduled")) take_scheduled_of_earlier();
  run_.has_finished = run_.is_done() && state.undone == 0 && is_finished(run_.folder) &&
                      checkpoint->content.metadata.at("recipe") == run_.job.config().to_toml();
  run_.ranks.wait_for_all();  // until every rank has read what may be removed now
  // A crash between the two writes of a save leaves the former best in place.
  if (state.best_step == state.step) store(checkpoint->content, true);
  if (run_.writes()) {
    expect_best();
    store_.prune(state.step, kept());
  }
  run_.ranks.wait_for_all();
  return checkpoint->path;
}

// An earlier version's checkpoint names the last one that its recipe asked for. Those before it are
// such ones, too.
void RunCheckpoints::take_scheduled_of_earlier() {
  std::vector<std::int64_t>& scheduled = run_.state.scheduled;
  std::vector<std::int64_t> steps = store_.steps();
  std::erase_if(steps, [&](std::int64_t step) { return step >= scheduled.back(); });
  scheduled.insert(scheduled.begin(), steps.rbegin(), steps.rend());
}

// The best weights are needed at the end of the run, and would be missed only then.
void RunCheckpoints::expect_best() const {
  if (run_.state.best_step < 0) return;
  const std::string path = best_path().string();
  const io::TensorFile file = best();
  expect_model_of_run(run_.folder, file, path);
  expect_fits(file, path, run_.variables);
}

std::int64_t RunCheckpoints::roll_back(const StepResult& cause) {
  const StepPlace& place = cause.place;
  RunState& state = run_.state;
  run_.steps->drop();
  const std::int64_t consecutive_non_finite = state.consecutive_non_finite;
  const std::string data = state.data, backend = state.backend;
  run_.ranks.wait_for_all();  // until the checkpoint is written
  const auto checkpoint = store_.latest(state.scheduled.back());
  check(checkpoint.has_value(), ErrorKind::kBadInput, "{}: no intact checkpoint to go back to",
        run_.folder.checkpoints().string());
  state = from_checkpoint(checkpoint->content, checkpoint->path.string(), run_.job, run_.variables,
                          &run_.steps->carries());
  run_.ranks.wait_for_all();  // rank 0 may remove the file from now on
  // The batches since the checkpoint are left out: what it carries does not precede the next one.
  run_.steps->carries().clear();
  // Losses of an epoch before, if the file to go back to was damaged and an earlier one taken.
  if (state.epoch != place.epoch) state.epoch_loss = state.epoch_items = 0;
  const std::int64_t skipped = place.step + 1 - state.step;
  state.step = place.step + 1;
  state.epoch = place.epoch;
  state.batch = place.batch + cause.micro_batches;
  state.skipped += skipped;
  state.consecutive_non_finite = consecutive_non_finite;
  state.data = data;
  state.backend = backend;
  return skipped;
}

// Processors that compute otherwise, and faults of memory, make a rank drift.
void RunCheckpoints::expect_same_state(const io::TensorFile& content) {
  if (compared_step_ == run_.state.step) return;
  const std::string has = fmt::format("has another state after step {}", run_.state.step);
  expect_same_content(run_.ranks, content, has);
  compared_step_ = run_.state.step;
}

void RunCheckpoints::expect_same_ranks() {
  if (run_.ranks.size() > 1) expect_same_state(content());
}

void RunCheckpoints::save() {
  saved_step_ = run_.state.step;
  if (!run_.has_folder()) return;
  const io::TensorFile now = content();
  expect_same_state(now);
  store(now, run_.state.best_step == run_.state.step);
}

void RunCheckpoints::store(const io::TensorFile& content, bool is_best) {
  if (run_.writes()) store_.save(run_.state.step, content, is_best, kept());
}

// A rollback may go back to the start, which nothing else needs.
std::vector<std::int64_t> RunCheckpoints::kept() const {
  std::vector<std::int64_t> steps = run_.state.scheduled;
  const bool rolls_back = run_.job.train().on_nonfinite == OnNonFinite::kRollback;
  if (!rolls_back && run_.state.step > 0) std::erase(steps, 0);
  return steps;
}

// A checkpoint saved by an interruption is not part of an average, because the run must equal one
// without an interruption; the checkpoint at the run's end is part of it.
std::vector<std::filesystem::path> RunCheckpoints::to_average() const {
  std::vector<std::int64_t> steps = run_.state.scheduled;
  std::erase(steps, 0);
  if (steps.empty() || steps.back() != run_.state.step) steps.push_back(run_.state.step);
  const auto most = std::min(std::ssize(steps), run_.job.train().average_last);
  std::vector<std::filesystem::path> paths;
  for (auto step = steps.rbegin(); std::ssize(paths) < most; ++step) {
    paths.push_back(store_.path(*step));
  }
  return paths;
}

}  // namespace keel::train

// How a run begins, and how it resumes.
#include <utility>

#include "frontend/train/run_result.h"
#include "frontend/train/trainer.h"

namespace keel::train {

// The checkpoint comes before all other files: a run that ends in its first moments can be resumed,
// or has left nothing.
void Trainer::start() {
  steps_->initialize();
  if (writes()) {
    lock_ = lock_run(folder_);
    expect_no_run(folder_);
    store_.save(state_.step, checkpoint(), false);
  }
  saved_step_ = state_.step;
}

void Trainer::resume() {
  const auto checkpoint = store_.latest();
  check(checkpoint.has_value(), ErrorKind::kBadInput, "{}: no intact checkpoint to resume from",
        folder_.checkpoints().string());
  expect_model_of_run(folder_, checkpoint->content, checkpoint->path.string());
  expect_options_of_run(folder_, checkpoint->content, checkpoint->path.string());
  const std::string data = std::exchange(state_.data, {});
  state_ = from_checkpoint(checkpoint->content, checkpoint->path.string(), job_, variables_,
                           &steps_->carries());
  if (state_.data.empty()) state_.data = data;  // of a version that did not write it
  check(state_.data == data, ErrorKind::kBadInput,
        "{}: the data are not those that it was trained on: expected {}; got {}",
        checkpoint->path.string(), state_.data, data);
  check(state_.step == checkpoint->step, ErrorKind::kBadInput,
        "{}: expected the state after step {}, as its name says, got that after step {}",
        checkpoint->path.string(), checkpoint->step, state_.step);
  saved_step_ = state_.step;
  if (!checkpoint->content.metadata.contains("scheduled")) take_scheduled_of_earlier();
  has_finished_ = is_done() && state_.undone == 0 && is_finished(folder_) &&
                  checkpoint->content.metadata.at("recipe") == job_.config().to_toml();
  ranks_.wait_for_all();  // until every rank has read what may be removed now
  // A crash between the two writes of a save leaves the former best in place.
  if (state_.best_step == state_.step) {
    store(checkpoint->content, true);
  }
  if (writes()) {
    expect_best();
    store_.prune(state_.step, kept());
  }
  ranks_.wait_for_all();
  if (has_finished_) return;
  progress_.line(fmt::format("resumed at step {} from {}", state_.step, checkpoint->path.string()));
}

// An earlier version's checkpoint names the last one that its recipe asked for. Those before it are
// such ones, too.
void Trainer::take_scheduled_of_earlier() {
  std::vector<std::int64_t> steps = store_.steps();
  std::erase_if(steps, [&](std::int64_t step) { return step >= state_.scheduled.back(); });
  state_.scheduled.insert(state_.scheduled.begin(), steps.rbegin(), steps.rend());
}

// The best weights are needed at the end of the run, and would be missed only then.
void Trainer::expect_best() const {
  if (state_.best_step < 0) return;
  const std::string path = store_.best_path().string();
  const io::TensorFile best = io::read_safetensors(path, {.require_checksums = true});
  expect_model_of_run(folder_, best, path);
  expect_fits(best, path, variables_);
}

}  // namespace keel::train

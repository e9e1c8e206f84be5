// How the training loop handles a step that is not finite.
#include "frontend/train/trainer.h"

namespace keel::train {

std::string Trainer::text(const NonFiniteStep& found) {
  const StepResult& result = found.result;
  return fmt::format("step {}: loss {}, gradient norm {}; first not finite: {}", result.place.step,
                     result.loss, result.grad_norm, found.where);
}

void Trainer::take_non_finite(const StepResult& result) {
  const TrainOptions& options = job_.train();
  if (options.skips()) steps_->undo();
  const NonFiniteStep found{result, steps_->first_not_finite(result)};
  if (options.on_nonfinite == OnNonFinite::kStop) stop_at(found, "");
  if (++state_.consecutive_non_finite > options.nonfinite_limit) {
    stop_at(found, fmt::format("; train.nonfinite_limit = {} is used up", options.nonfinite_limit));
  }
  if (!options.skips()) throw found;
  ++state_.skipped;
  log_non_finite(found, "skip", 1);
}

void Trainer::stop_at(const NonFiniteStep& found, const std::string& why) {
  log_non_finite(found, "stop", 0);
  fail(ErrorKind::kDiverged, "{}{}", text(found), why);
}

void Trainer::log_non_finite(const NonFiniteStep& found, std::string_view action,
                             std::int64_t skipped) {
  const StepResult& result = found.result;
  log_->nonfinite({result.place.step + 1, result.place.epoch, action, result.loss, result.grad_norm,
                   skipped, found.where});
  if (skipped == 0) return;  // the error says it
  progress_.line(fmt::format("{}; {}: updates left out: {}", text(found), action, skipped));
}

void Trainer::roll_back(const NonFiniteStep& cause) {
  const StepPlace& place = cause.result.place;
  steps_->drop();
  const std::int64_t consecutive_non_finite = state_.consecutive_non_finite;
  const std::string data = state_.data;
  ranks_.wait_for_all();  // until the checkpoint is written
  const auto checkpoint = store_.latest(state_.scheduled.back());
  check(checkpoint.has_value(), ErrorKind::kBadInput, "{}: no intact checkpoint to go back to",
        folder_.checkpoints().string());
  state_ = from_checkpoint(checkpoint->content, checkpoint->path.string(), job_, variables_,
                           &steps_->carries());
  ranks_.wait_for_all();  // rank 0 may remove the file from now on
  // The batches since the checkpoint are left out: what it carries does not precede the next one.
  steps_->carries().clear();
  // Losses of an epoch before, if the file to go back to was damaged and an earlier one taken.
  if (state_.epoch != place.epoch) state_.epoch_loss = state_.epoch_items = 0;
  const std::int64_t skipped = place.step + 1 - state_.step;
  state_.step = place.step + 1;
  state_.epoch = place.epoch;
  state_.batch = place.batch + cause.result.micro_batches;
  state_.skipped += skipped;
  state_.consecutive_non_finite = consecutive_non_finite;
  state_.data = data;
  log_non_finite(cause, "rollback", skipped);
}

}  // namespace keel::train

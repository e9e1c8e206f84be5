#include "frontend/train/trainer.h"

#include "frontend/io/atomic_file.h"
#include "frontend/train/signals.h"

namespace keel::train {
namespace {

std::string percent(double rate) { return fmt::format("{:.2f} %", 100 * rate); }

}  // namespace

Trainer::Trainer(Backend& backend, const Config& config, const RunOptions& options)
    : config_(config),
      folder_{options.folder},
      data_(config.model().load(config.data().request())),
      variables_(backend, static_cast<std::uint64_t>(config.train().seed)),
      steps_(backend, variables_, config, data_.train),
      evaluator_(backend, variables_, config),
      progress_(options.quiet),
      watched_(steps_.watches(), [this](const std::string& text) { progress_.warning(text); }),
      store_(folder_.checkpoints(), static_cast<int>(config.train().keep_checkpoints),
             [this](const std::string& message) { progress_.warning(message); }) {
  options.resume ? resume() : steps_.initialize();
  log_ =
      std::make_unique<RunLog>(folder_, options.resume ? std::optional(state_.step) : std::nullopt);
  if (!options.resume) io::write_file_atomically(folder_.config(), config.to_toml(options.facts));
}

void Trainer::resume() {
  const auto checkpoint = store_.latest();
  check(checkpoint.has_value(), ErrorKind::kBadInput, "{}: no intact checkpoint to resume from",
        folder_.checkpoints().string());
  state_ = from_checkpoint(checkpoint->content, checkpoint->path.string(), config_, variables_);
  saved_step_ = state_.step;
  // A crash between the two writes of a save leaves the former best in place.
  if (state_.best_step == state_.step) store_.save(state_.step, checkpoint->content, true);
  progress_.line(fmt::format("resumed at step {} from {}", state_.step, checkpoint->path.string()));
}

bool Trainer::is_stale() const {
  const std::int64_t patience = config_.train().patience;
  return patience > 0 && state_.evaluations_since_best >= patience;
}

bool Trainer::is_done() const { return state_.step >= steps_.total_steps() || is_stale(); }

Summary Trainer::run() {
  const SignalGuard signals;
  start_ = std::chrono::steady_clock::now();
  first_step_ = state_.step;
  while (!is_done() && SignalGuard::received() == 0) {
    run_step();
    const std::int64_t batches = steps_.steps_per_epoch() * config_.train().accumulate;
    if (state_.batch == batches) finish_epoch();
    const std::int64_t every = config_.train().checkpoint_every;
    if (every > 0 && state_.step % every == 0 && saved_step_ != state_.step) save(false);
  }
  if (saved_step_ != state_.step) save(false);
  summary_.signal = SignalGuard::received();
  return summarize();
}

void Trainer::run_step() {
  take_results(steps_.due());
  steps_.start({state_.step, state_.epoch, state_.batch});
  ++state_.step;
  state_.batch += config_.train().accumulate;
  take_results(0);
}

void Trainer::take_results(std::int64_t waits) {
  while (const StepResult* result = steps_.next(waits-- > 0)) {
    for (const double loss : result->losses) state_.epoch_loss += loss;
    watched_.take(result->place.step + 1, result->watched);
    show_progress(*result);
  }
}

void Trainer::show_progress(const StepResult& result) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::int64_t step = result.place.step + 1, epoch = result.place.epoch;
  const auto done = double(step - first_step_);
  const double rows = done * double(config_.train().batch * config_.train().accumulate);
  const double left = double(steps_.total_steps() - step) * seconds / done;
  progress_.update({step, steps_.total_steps(), epoch + 1, result.loss, rows / seconds, left});
  if (step % config_.train().log_every != 0) return;
  log_->step(
      {step, epoch, result.loss, result.lr, result.grad_norm, rows / seconds, watched_.largest()});
}

void Trainer::finish_epoch() {
  take_all_results();
  summary_.train_loss = state_.epoch_loss / double(state_.batch);
  ++state_.epoch;
  state_.batch = 0;
  state_.epoch_loss = 0;
  log_->epoch(state_.step, state_.epoch, summary_.train_loss);
  const bool due = state_.epoch % config_.train().eval_every == 0;
  const bool is_best = due && evaluate();
  const std::int64_t test_every = config_.train().test_every;
  if (test_every > 0 && state_.epoch % test_every == 0) {
    const Evaluation test = evaluator_.run(data_.test);
    log_->evaluation(state_.step, state_.epoch, "test", test);
    progress_.line(fmt::format("epoch {}: test error {}", state_.epoch, percent(test.error)));
  }
  save(is_best);
}

// Whether the weights are the best so far on the validation set.
bool Trainer::evaluate() {
  summary_.valid = evaluator_.run(data_.valid);
  log_->evaluation(state_.step, state_.epoch, "valid", summary_.valid);
  const bool is_best = summary_.valid.error < state_.best_error;
  if (is_best) {
    state_.best_error = summary_.valid.error;
    state_.best_step = state_.step;
  }
  state_.evaluations_since_best = is_best ? 0 : state_.evaluations_since_best + 1;
  progress_.line(fmt::format("epoch {}: train loss {:.4f}, valid loss {:.4f}, valid error {}{}",
                             state_.epoch, summary_.train_loss, summary_.valid.loss,
                             percent(summary_.valid.error), is_best ? " (best)" : ""));
  return is_best;
}

void Trainer::save(bool is_best) {
  take_all_results();  // a step that diverged is found before anything is kept of it
  log_->sync();
  store_.save(state_.step, to_checkpoint(state_, config_, variables_), is_best);
  saved_step_ = state_.step;
}

Evaluation Trainer::test_weights(const io::TensorFile& file, const std::string& where) {
  load_variables(file, where, variables_);
  return evaluator_.run(data_.test);
}

Summary Trainer::summarize() {
  summary_.state = state_;
  summary_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto rows =
      (state_.step - first_step_) * config_.train().batch * config_.train().accumulate;
  summary_.rows_per_second = double(rows) / summary_.seconds;
  summary_.stopped_early = is_stale();
  log_->plot(fmt::format("{} on {}", config_.model().name(), data_.train.source()));
  if (summary_.signal != 0) return summary_;
  summary_.valid = evaluator_.run(data_.valid);
  summary_.test = evaluator_.run(data_.test);
  const io::TensorFile last = to_checkpoint(state_, config_, variables_);
  if (state_.best_step >= 0) {
    const auto path = store_.best_path();
    summary_.best_test =
        test_weights(io::read_safetensors(path, {.require_checksums = true}), path);
  }
  if (config_.train().average_last > 1) {
    auto paths = store_.paths();
    paths.resize(std::min(paths.size(), std::size_t(config_.train().average_last)));
    const io::TensorFile average = average_checkpoints(paths);
    io::write_safetensors(folder_.average(), average);
    summary_.average_test = test_weights(average, folder_.average());
  }
  load_variables(last, "memory", variables_);
  return summary_;
}

}  // namespace keel::train

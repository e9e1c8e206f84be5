#include "frontend/train/trainer.h"

#include <cmath>

#include "frontend/train/atomic_file.h"
#include "frontend/train/signals.h"
#include "frontend/train/step_graph.h"

namespace keel::train {
namespace {

data::BatchOptions batch_options(const TrainOptions& options) {
  return {.batch = options.batch, .seed = static_cast<std::uint64_t>(options.seed)};
}

std::string percent(double rate) { return fmt::format("{:.2f} %", 100 * rate); }

}  // namespace

Trainer::Trainer(Backend& backend, const Config& config, const RunOptions& options)
    : backend_(backend),
      config_(config),
      folder_{options.folder},
      data_(config.model().load(config.data().request())),
      variables_(backend, static_cast<std::uint64_t>(config.train().seed)),
      batcher_(data_.train.rows(), batch_options(config.train())),
      feeder_(config.model().inputs(), data_.train, config.train().batch),
      evaluator_(backend, variables_, config),
      progress_(options.quiet),
      store_(folder_.checkpoints(), static_cast<int>(config.train().keep_checkpoints),
             [this](const std::string& message) { progress_.warning(message); }) {
  check(steps_per_epoch() >= 1, ErrorKind::kUsage,
        "train.accumulate: {} micro-batches of {} rows are more than the {} training rows",
        config.train().accumulate, config.train().batch, data_.train.rows());
  compile();
  options.resume ? resume() : initialize();
  log_ =
      std::make_unique<RunLog>(folder_, options.resume ? std::optional(state_.step) : std::nullopt);
  if (!options.resume) write_file_atomically(folder_.config(), config.to_toml(options.facts));
}

void Trainer::compile() {
  const CompileOptions guarded{.guard = "grad_norm"};
  step_ = std::make_unique<Program>(backend_, variables_, build_step(config_), guarded);
  if (config_.train().accumulate > 1) {
    accumulate_ = std::make_unique<Program>(backend_, variables_, build_accumulate(config_));
  }
}

void Trainer::initialize() {
  const Graph graph = build_initialize(config_);
  if (graph.updates().empty()) return;
  Program program(backend_, variables_, graph);
  program.feed("tick", tick_);
  feeder_.feed(program, batcher_.rows(0, 0));
  program.run();
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

std::int64_t Trainer::total_steps() const {
  const std::int64_t all = checked_multiply(config_.train().epochs, steps_per_epoch());
  const std::int64_t limit = config_.train().max_steps;
  return limit > 0 ? std::min(limit, all) : all;
}

bool Trainer::is_stale() const {
  const std::int64_t patience = config_.train().patience;
  return patience > 0 && state_.evaluations_since_best >= patience;
}

bool Trainer::is_done() const { return state_.step >= total_steps() || is_stale(); }

Summary Trainer::run() {
  const SignalGuard signals;
  start_ = std::chrono::steady_clock::now();
  first_step_ = state_.step;
  while (!is_done() && SignalGuard::received() == 0) {
    run_step();
    if (state_.batch == steps_per_epoch() * config_.train().accumulate) finish_epoch();
    const std::int64_t every = config_.train().checkpoint_every;
    if (every > 0 && state_.step % every == 0 && saved_step_ != state_.step) save(false);
  }
  if (saved_step_ != state_.step) save(false);
  summary_.signal = SignalGuard::received();
  return summarize();
}

double Trainer::run_micro_batch(Program& program) {
  tick_.as<std::int32_t>()[0] = static_cast<std::int32_t>(
      state_.step * config_.train().accumulate + state_.batch % config_.train().accumulate);
  program.feed("tick", tick_);
  feeder_.feed(program, batcher_.rows(static_cast<std::uint32_t>(state_.epoch), state_.batch));
  program.run();
  ++state_.batch;
  const double loss = program.scalar("loss");
  state_.epoch_loss += loss;
  return loss;
}

void Trainer::run_step() {
  double loss = 0;
  for (std::int64_t i = 1; i < config_.train().accumulate; ++i)
    loss += run_micro_batch(*accumulate_);
  const double factor =
      optim::schedule_factor(config_.train().schedule_options(), state_.step, total_steps());
  lr_.as<float>()[0] = static_cast<float>(config_.train().lr * factor);
  step_number_.as<std::int32_t>()[0] = static_cast<std::int32_t>(state_.step);
  step_->feed("lr", lr_);
  step_->feed("step", step_number_);
  loss = (loss + run_micro_batch(*step_)) / double(config_.train().accumulate);
  check_finite(loss);
  ++state_.step;
  show_progress(loss);
}

void Trainer::check_finite(double loss) {
  const double norm = step_->scalar("grad_norm");
  if (std::isfinite(loss) && std::isfinite(norm)) return;
  const auto culprit = step_->find_non_finite();
  const std::string where =
      culprit ? fmt::format("{} ({}), element {} is {}", culprit->node, culprit->what,
                            culprit->element, culprit->value)
              : std::string("a value that a second run of the step does not show");
  fail(ErrorKind::kDiverged, "step {}: loss {}, gradient norm {}; first not finite: {}",
       state_.step, loss, norm, where);
}

void Trainer::show_progress(double loss) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto done = double(state_.step - first_step_);
  const double rows = done * double(config_.train().batch * config_.train().accumulate);
  const double left = double(total_steps() - state_.step) * seconds / done;
  progress_.update({state_.step, total_steps(), state_.epoch + 1, loss, rows / seconds, left});
  if (state_.step % config_.train().log_every != 0) return;
  log_->step({state_.step, state_.epoch, loss, double(lr_.as<float>()[0]),
              step_->scalar("grad_norm"), rows / seconds});
}

void Trainer::finish_epoch() {
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
  log_->sync();
  store_.save(state_.step, to_checkpoint(state_, config_, variables_), is_best);
  saved_step_ = state_.step;
}

Evaluation Trainer::test_weights(const TensorFile& file, const std::string& where) {
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
  const TensorFile last = to_checkpoint(state_, config_, variables_);
  if (state_.best_step >= 0) {
    const auto path = store_.best_path();
    summary_.best_test = test_weights(read_safetensors(path, {.require_checksums = true}), path);
  }
  if (config_.train().average_last > 1) {
    auto paths = store_.paths();
    paths.resize(std::min(paths.size(), std::size_t(config_.train().average_last)));
    const TensorFile average = average_checkpoints(paths);
    write_safetensors(folder_.average(), average);
    summary_.average_test = test_weights(average, folder_.average());
  }
  load_variables(last, "memory", variables_);
  return summary_;
}

}  // namespace keel::train

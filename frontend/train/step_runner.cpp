#include "frontend/train/step_runner.h"

#include <algorithm>
#include <cmath>

#include "frontend/train/step_graph.h"

namespace keel::train {
namespace {

constexpr std::int64_t kMostLookBack = 64, kFirstWatched = 64;  // steps

data::BatchOptions batch_options(const TrainOptions& options) {
  return {.batch = options.batch, .seed = static_cast<std::uint64_t>(options.seed)};
}

}  // namespace

StepRunner::StepRunner(Backend& backend, Variables& variables, const Config& config,
                       const data::Dataset& rows)
    : backend_(backend),
      variables_(variables),
      config_(config),
      batcher_(rows.rows(), batch_options(config.train())),
      feeder_(config.model().inputs(), rows, config.train().batch) {
  const std::int64_t accumulate = config.train().accumulate;
  check(steps_per_epoch() >= 1, ErrorKind::kUsage,
        "train.accumulate: {} micro-batches of {} rows are more than the {} training rows",
        accumulate, config.train().batch, rows.rows());
  const CompileOptions guarded{.guard = "grad_norm"};
  step_ = std::make_unique<Program>(backend, variables, build_step(config, &watches_), guarded);
  if (accumulate > 1) {
    accumulate_ = std::make_unique<Program>(backend, variables, build_accumulate(config));
  }
  const std::int64_t slots = 2 * std::min(config.train().log_every, kMostLookBack);
  for (std::int64_t i = 0; i < slots; ++i) {
    slots_.push_back({{}, 0, Scalars(backend, accumulate + 1 + std::ssize(watches_))});
  }
}

std::int64_t StepRunner::total_steps() const {
  const std::int64_t all = checked_multiply(config_.train().epochs, steps_per_epoch());
  const std::int64_t limit = config_.train().max_steps;
  return limit > 0 ? std::min(limit, all) : all;
}

void StepRunner::initialize() {
  const Graph graph = build_initialize(config_);
  if (graph.updates().empty()) return;
  Program program(backend_, variables_, graph);
  feed(program, {}, 0);
  program.run();
}

void StepRunner::feed(Program& program, const StepPlace& place, std::int64_t micro_batch) {
  tick_.as<std::int32_t>()[0] = static_cast<std::int32_t>(place.step);
  first_row_.as<std::int32_t>()[0] = static_cast<std::int32_t>(micro_batch * config_.train().batch);
  program.feed("tick", tick_);
  program.feed("first_row", first_row_);
  feeder_.feed(program,
               batcher_.rows(static_cast<std::uint32_t>(place.epoch), place.batch + micro_batch));
}

double StepRunner::feed_rate(const StepPlace& place) {
  const double factor =
      optim::schedule_factor(config_.train().schedule_options(), place.step, total_steps());
  lr_.as<float>()[0] = static_cast<float>(config_.train().lr * factor);
  step_number_.as<std::int32_t>()[0] = static_cast<std::int32_t>(place.step);
  step_->feed("lr", lr_);
  step_->feed("step", step_number_);
  return double(lr_.as<float>()[0]);
}

void StepRunner::start(const StepPlace& place) {
  Slot& slot = slots_[std::size_t((oldest_ + started_++) % std::ssize(slots_))];
  slot.place = place;
  slot.lr = feed_rate(place);
  slot.scalars.clear();
  const std::int64_t last = config_.train().accumulate - 1;
  for (std::int64_t i = 0; i <= last; ++i) {
    Program& program = i < last ? *accumulate_ : *step_;
    feed(program, place, i);
    program.run();
    slot.scalars.send(program, "loss");
  }
  slot.scalars.send(*step_, "grad_norm");
  if (!is_watched(place.step)) return;
  for (std::size_t i = 0; i < watches_.size(); ++i) slot.scalars.send(*step_, watch_output(i));
}

bool StepRunner::is_watched(std::int64_t step) const {
  return step < kFirstWatched || (step + 1) % config_.train().log_every == 0;
}

const StepResult* StepRunner::next(bool wait) {
  if (started_ == 0) return nullptr;
  const Slot& slot = slots_[std::size_t(oldest_)];
  if (!wait && !slot.scalars.have_arrived()) return nullptr;
  read(slot);
  oldest_ = (oldest_ + 1) % std::ssize(slots_);
  --started_;
  check_finite();
  return &result_;
}

void StepRunner::read(const Slot& slot) {
  const std::int64_t micro_batches = config_.train().accumulate;
  result_.place = slot.place;
  result_.lr = slot.lr;
  result_.losses.clear();
  result_.loss = 0;
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    result_.losses.push_back(slot.scalars.at(i));
    result_.loss += result_.losses.back();
  }
  result_.loss /= double(micro_batches);
  result_.grad_norm = slot.scalars.at(micro_batches);
  result_.watched.clear();
  for (std::int64_t i = micro_batches + 1; i < slot.scalars.size(); ++i) {
    result_.watched.push_back(slot.scalars.at(i));
  }
}

void StepRunner::check_finite() {
  const StepResult& r = result_;
  if (std::isfinite(r.loss) && std::isfinite(r.grad_norm)) return;
  feed_rate(r.place);
  feed(*step_, r.place, config_.train().accumulate - 1);
  const auto culprit = step_->find_non_finite();
  const std::string where =
      culprit ? fmt::format("{} ({}), element {} is {}", culprit->node, culprit->what,
                            culprit->element, culprit->value)
              : std::string("a value that a second run of the step does not show");
  fail(ErrorKind::kDiverged, "step {}: loss {}, gradient norm {}; first not finite: {}",
       r.place.step, r.loss, r.grad_norm, where);
}

}  // namespace keel::train

#include "frontend/train/step_runner.h"

#include <algorithm>

#include "frontend/train/step_graph.h"

namespace keel::train {
namespace {

constexpr std::int64_t kMostLookBack = 64;  // steps

}  // namespace

StepRunner::StepRunner(Backend& backend, Variables& variables, const Job& job, task::Stream& stream)
    : Steps(backend, variables, job, stream),
      step_(backend, variables,
            [this](const task::Sizes& sizes) {
              monitors_.clear();
              return build_step(job_, sizes, &monitors_);
            },
            {.guard = job.train().skips() ? "guard" : "grad_norm",
             .arena = &arena_,
             .carries = &carries_}),
      accumulate_(backend, variables,
                  [this](const task::Sizes& sizes) { return build_accumulate(job_, sizes); },
                  {.arena = &arena_, .carries = &carries_}) {
  step_.at(stream.shapes().front());
  const std::int64_t slots = 2 * std::min(job.train().log_every, kMostLookBack);
  for (std::int64_t i = 0; i < slots; ++i) {
    slots_.push_back(
        {{}, 0, 0, 0, Scalars(backend, job.train().accumulate + 1 + std::ssize(monitors_))});
  }
  if (!job.train().skips() || job.train().accumulate == 1) return;
  const Graph graph = build_accumulate(job, stream.shapes().front());
  variables.declare(graph);
  for (const Update& update : graph.updates()) {
    const Node& leaf = graph.node(update.leaf);
    if (leaf.kind != NodeKind::kCarry) kept_[leaf.name];
  }
}

Program& StepRunner::feed(ProgramCache& programs, const Part& part) {
  const task::Batch& batch =
      stream_.at(static_cast<std::uint32_t>(part.place.epoch), part.place.batch + part.micro_batch);
  Program& program = programs.at(batch.sizes);
  feeder_.feed(program, batch,
               {.step = part.place.step,
                .first_row = part.first_row,
                .items = part.items,
                .rate = rate(part.place)});
  rows_fed_ = batch.sizes[0];
  return program;
}

void StepRunner::keep() {
  for (auto& [name, value] : kept_) {
    if (!is_gathered(name)) value = variables_.read(name, true);
  }
  if (!kept_.empty()) kept_carries_ = carries_.read();
}

void StepRunner::undo() {
  clear_gathered();
  for (const auto& [name, value] : kept_) {
    if (!is_gathered(name)) variables_.write(name, value);
  }
  if (!kept_.empty()) carries_.write(kept_carries_);
}

void StepRunner::clear_gathered() {
  for (const auto& [name, variable] : variables_.all()) {
    if (is_gathered(name)) variables_.write(name, Tensor(variable.type));
  }
}

void StepRunner::start(const StepPlace& place) {
  keep();
  Slot& slot = slots_[std::size_t((oldest_ + started_++) % std::ssize(slots_))];
  slot.place = place;
  slot.micro_batches = micro_batches(place);
  slot.items = items(place);
  slot.scalars.clear();
  Part part{.place = place, .items = slot.items};
  for (; part.micro_batch < slot.micro_batches - 1; ++part.micro_batch) {
    Program& program = feed(accumulate_, part);
    program.run();
    slot.scalars.send(program, "loss");
    part.first_row += rows_fed_;
  }
  Program& step = feed(step_, part);
  slot.lr = rate(place);
  step.run();
  slot.scalars.send(step, "loss");
  slot.scalars.send(step, "grad_norm");
  if (!is_watched(place.step)) return;
  for (std::size_t i = 0; i < monitors_.size(); ++i) slot.scalars.send(step, monitor_output(i));
}

std::int64_t StepRunner::due() const {
  if (!kept_.empty()) return started_;
  return started_ < std::ssize(slots_) ? 0 : started_ / 2;
}

const StepResult* StepRunner::next(bool wait) {
  if (started_ == 0) return nullptr;
  const Slot& slot = slots_[std::size_t(oldest_)];
  if (!wait && !slot.scalars.have_arrived()) return nullptr;
  read(slot);
  oldest_ = (oldest_ + 1) % std::ssize(slots_);
  --started_;
  return &result_;
}

void StepRunner::read(const Slot& slot) {
  result_.place = slot.place;
  result_.micro_batches = slot.micro_batches;
  result_.items = slot.items;
  result_.lr = slot.lr;
  result_.loss = 0;
  for (std::int64_t i = 0; i < slot.micro_batches; ++i) result_.loss += slot.scalars.at(i);
  result_.grad_norm = slot.scalars.at(slot.micro_batches);
  result_.monitored.clear();
  for (std::int64_t i = slot.micro_batches + 1; i < slot.scalars.size(); ++i) {
    result_.monitored.push_back(slot.scalars.at(i));
  }
}

std::string StepRunner::first_not_finite(const StepResult& r) {
  // The gathered sums of this update are not finite either, and would be named in place of their
  // cause.
  if (job_.train().accumulate > 1) clear_gathered();
  Part part{.place = r.place, .items = r.items};
  for (; part.micro_batch < r.micro_batches; ++part.micro_batch) {
    const bool is_last = part.micro_batch == r.micro_batches - 1;
    Program& program = feed(is_last ? step_ : accumulate_, part);
    const auto found = program.find_non_finite();
    if (found) return place_text(*found, r.place.batch + part.micro_batch);
    part.first_row += rows_fed_;
  }
  return "a value that a second run of the step does not show";
}

}  // namespace keel::train

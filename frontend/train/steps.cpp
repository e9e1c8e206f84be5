#include "frontend/train/steps.h"

#include <algorithm>

#include "frontend/train/signals.h"
#include "frontend/train/step_graph.h"

namespace keel::train {
namespace {

constexpr std::int64_t kFirstWatched = 64;  // steps

}  // namespace

Steps::Steps(Backend& backend, Variables& variables, const Job& job, task::Stream& stream)
    : backend_(backend),
      variables_(variables),
      job_(job),
      stream_(stream),
      feeder_(job.network()),
      arena_(backend),
      carries_(backend),
      total_(length()) {}

std::int64_t Steps::steps(std::uint32_t epoch) const {
  const std::int64_t accumulate = job_.train().accumulate;
  return (stream_.steps(epoch) + accumulate - 1) / accumulate;
}

Steps::Length Steps::length() const {
  const std::int64_t limit = job_.train().max_steps;
  Length total;
  for (; total.epochs < job_.train().epochs; ++total.epochs) {
    const std::int64_t after = total.steps + steps(static_cast<std::uint32_t>(total.epochs));
    if (limit > 0 && after > limit) return {limit, total.epochs};
    total.steps = after;
  }
  return total;
}

std::int64_t Steps::micro_batches(const StepPlace& place) const {
  const std::int64_t left = stream_.steps(static_cast<std::uint32_t>(place.epoch)) - place.batch;
  return std::min(job_.train().accumulate, left);
}

double Steps::items(const StepPlace& place) const {
  double items = 0;
  for (std::int64_t i = 0; i < micro_batches(place); ++i) {
    items += stream_.items(static_cast<std::uint32_t>(place.epoch), place.batch + i);
  }
  return items;
}

void Steps::initialize() {
  const task::Batch& batch = stream_.at(0, 0);
  const Graph graph = build_initialize(job_, batch.sizes);
  if (graph.updates().empty()) return;
  Program once(backend_, variables_, graph);
  feeder_.feed(once, batch, {.items = batch.items, .rate = rate({})});
  once.run();
}

int Steps::signal() const { return SignalGuard::received(); }

double Steps::rate(const StepPlace& place) const {
  return static_cast<float>(job_.train().rate(place.step, total_steps()));
}

bool Steps::is_watched(std::int64_t step) const {
  return step < kFirstWatched || (step + 1) % job_.train().log_every == 0;
}

void Steps::drop() {
  while (next(true) != nullptr) {
  }
}

std::string place_text(const NonFinite& found, std::int64_t batch) {
  std::string text = fmt::format("batch {}: {} ({}), element {} is {}", batch, found.node,
                                 found.what, found.element, found.value);
  if (!found.inputs.empty()) text += ", it read " + found.inputs;
  return text;
}

}  // namespace keel::train

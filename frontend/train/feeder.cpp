#include "frontend/train/feeder.h"

namespace keel::train {
namespace {

// Made once, for a step allocates nothing.
const std::string kWeight = "weight", kRate = "lr", kStep = "step", kTick = "tick",
                  kFirstRow = "first_row";

}  // namespace

Feeder::Feeder(const task::Network& network) : Feeder(network.inputs(network.sizes(1))) {}

Feeder::Feeder(const std::vector<task::Input>& inputs) {
  for (const task::Input& input : inputs) names_.push_back(input.name);
}

void Feeder::feed(Program& program, const task::Batch& batch) const {
  check(batch.values.size() == names_.size(), ErrorKind::kUsage,
        "batch: expected {} values, got {}", names_.size(), batch.values.size());
  for (std::size_t i = 0; i < names_.size(); ++i) program.feed(names_[i], batch.values[i]);
}

template <class T>
void Feeder::feed_scalar(Program& program, const std::string& name, T value) {
  if (!program.takes(name)) return;
  Tensor& scalar = std::is_floating_point_v<T> ? real_ : whole_;
  scalar.as<T>()[0] = value;
  program.feed(name, scalar);
}

void Feeder::feed(Program& program, const task::Batch& batch, const StepPoint& point) {
  feed(program, batch);
  const double items = point.items > 0 ? point.items : batch.items;
  feed_scalar(program, kWeight, static_cast<float>(1 / items));
  feed_scalar(program, kRate, static_cast<float>(point.rate));
  feed_scalar(program, kStep, static_cast<std::int32_t>(point.step));
  feed_scalar(program, kTick, static_cast<std::int32_t>(point.step));
  feed_scalar(program, kFirstRow, static_cast<std::int32_t>(point.first_row));
}

}  // namespace keel::train

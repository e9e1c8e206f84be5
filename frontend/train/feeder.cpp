#include "frontend/train/feeder.h"

#include <utility>

namespace keel::train {
namespace {

// Made once, for a step allocates nothing.
const std::string kWeight = "weight", kRate = "lr", kStep = "step", kFirstRow = "first_row",
                  kStateWeight = "state_weight", kLoss = "loss";

}  // namespace

Feeder::Feeder(const task::Network& network) : Feeder(network.inputs(network.sizes(1))) {}

Feeder::Feeder(const std::vector<task::Input>& inputs) {
  for (const task::Input& input : inputs) names_.push_back(input.name);
}

void Feeder::check_values(const task::Batch& batch) const {
  check(batch.values.size() == names_.size(), ErrorKind::kUsage,
        "batch: expected {} values, got {}", names_.size(), batch.values.size());
}

void Feeder::feed(Program& program, const task::Batch& batch) const {
  check_values(batch);
  for (std::size_t i = 0; i < names_.size(); ++i) program.feed(names_[i], batch.values[i]);
}

template <class Give>
void Feeder::give_scalars(double items, const StepPoint& point, const Give& give) {
  const auto real = [&](const std::string& name, double value) {
    real_.as<float>()[0] = static_cast<float>(value);
    give(name, real_);
  };
  const auto whole = [&](const std::string& name, std::int64_t value) {
    whole_.as<std::int32_t>()[0] = static_cast<std::int32_t>(value);
    give(name, whole_);
  };
  real(kWeight, 1 / (point.items > 0 ? point.items : items));
  real(kRate, point.rate);
  whole(kStep, point.step);
  whole(kFirstRow, point.first_row);
}

void Feeder::feed(Program& program, const task::Batch& batch, const StepPoint& point) {
  feed(program, batch);
  give_scalars(batch.items, point, [&](const std::string& name, const Tensor& value) {
    if (program.takes(name)) program.feed(name, value);
  });
}

void Feeder::feed(Program& program, const StepPoint& point, const ShardSums& sums) {
  const auto give = [&](const std::string& name, const Tensor& value) {
    if (program.takes(name)) program.feed(name, value);
  };
  give_scalars(point.items, point, give);
  for (const auto& [name, value] :
       {std::pair{&kLoss, sums.loss}, {&kStateWeight, sums.state_weight}}) {
    real_.as<float>()[0] = static_cast<float>(value);
    give(*name, real_);
  }
}

Feeds Feeder::feeds(const task::Batch& batch, const StepPoint& point) {
  check_values(batch);
  Feeds feeds;
  for (std::size_t i = 0; i < names_.size(); ++i) feeds[names_[i]] = batch.values[i].clone();
  give_scalars(batch.items, point,
               [&](const std::string& name, const Tensor& value) { feeds[name] = value.clone(); });
  return feeds;
}

}  // namespace keel::train

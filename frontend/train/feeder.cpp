#include "frontend/train/feeder.h"

namespace keel::train {

Feeder::Feeder(const task::Model& model) : Feeder(model.inputs(model.sizes(1))) {}

Feeder::Feeder(const std::vector<task::Input>& inputs) {
  for (const task::Input& input : inputs) names_.push_back(input.name);
}

void Feeder::feed(Program& program, const task::Batch& batch) const {
  check(batch.values.size() == names_.size(), ErrorKind::kUsage,
        "batch: expected {} values, got {}", names_.size(), batch.values.size());
  for (std::size_t i = 0; i < names_.size(); ++i) program.feed(names_[i], batch.values[i]);
}

}  // namespace keel::train

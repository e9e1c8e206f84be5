// Feeds programs with the batches of a stream, and with the other inputs of a step.
#pragma once

#include <string>
#include <vector>

#include "frontend/task/network.h"
#include "src/runtime/run_graph.h"

namespace keel::train {

// The place of a batch in a training run.
struct StepPoint {
  std::int64_t step = 0;       // the number of the update: input "step"
  std::int64_t first_row = 0;  // rows that came in earlier batches of its update: "first_row"
  // The items of the whole update: input "weight" is 1 / items. 0 stands for the batch's own items.
  double items = 0;
  double rate = 0;  // the learning rate: input "lr"
};

// The inputs of an update by the sums of shards, besides those sums.
struct ShardSums {
  double loss = 0;          // of all shards: input "loss"
  double state_weight = 0;  // 1 / (number of runs whose states are averaged)
};

class Feeder {
 public:
  explicit Feeder(const task::Network& network);
  // For other inputs than those of Network::build.
  explicit Feeder(const std::vector<task::Input>& inputs);

  // Feeds the inputs of a batch. Allocates nothing on a backend that stores values as they are
  // declared. Throws Error{kUsage} when the batch is not of the program's sizes.
  void feed(Program& program, const task::Batch& batch) const;
  // Also feeds those inputs of a step (step_graph.h) that the program has. Allocates as little as
  // the other.
  void feed(Program& program, const task::Batch& batch, const StepPoint& point);
  // Feeds only those inputs, for a program that takes no batch.
  void feed(Program& program, const StepPoint& point, const ShardSums& sums);
  // All inputs that a step may have, as copies, for callers that run a graph without a program.
  Feeds feeds(const task::Batch& batch, const StepPoint& point);

 private:
  void check_values(const task::Batch& batch) const;
  // Calls `give` with the name and the value of every input of a step besides its batch.
  template <class Give>
  void give_scalars(double items, const StepPoint& point, const Give& give);

  std::vector<std::string> names_;
  Tensor real_{DType::kF32, {}}, whole_{DType::kI32, {}};
};

}  // namespace keel::train

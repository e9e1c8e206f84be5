// Optimizers as graph nodes: one update node a parameter, with its moments as explicit state.
#pragma once

#include <span>
#include <string>

#include "src/graph/graph.h"

namespace keel::optim {

struct OptimizerOptions {
  std::string name = "adam";  // sgd, adam or adamw (formulas: src/ops/optimizer_step.h)
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
};

// Scalars that every update reads.
struct StepInputs {
  Value lr;     // ()
  Value scale;  // (), multiplies every gradient; absent: 1
  Value step;   // () i32, counts updates from 0
};

// Appends the update of each parameter by its gradient and marks it, and its moments
// "<parameter>.momentum", "<parameter>.m", "<parameter>.v". Throws Error{kUsage} for an unknown
// name.
void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const Value> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options);

}  // namespace keel::optim

// Optimizers as graph nodes: one update node a parameter, with its moments as explicit state.
#pragma once

#include <span>
#include <vector>

#include "src/core/choice.h"
#include "src/graph/graph.h"

namespace keel::optim {

// Formulas: src/ops/optimizer_step.h.
enum class Optimizer {
  kSgd,
  kAdam,
  kAdamw,          // decoupled weight decay
  kAdamFairseq,    // adamw with raw_eps
  kAdamRelease,    // adam with raw_eps and release_bias
  kAdagrad,        // with eps 1e-6
  kRmspropGraves,  // with keep 0.95, momentum 0.9 and eps 1e-4
};
constexpr auto choice_words(Optimizer) {
  return std::to_array<std::string_view>(
      {"sgd", "adam", "adamw", "adam_fairseq", "adam_release", "adagrad", "rmsprop_graves"});
}

struct OptimizerOptions {
  Optimizer kind = Optimizer::kAdam;
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;                          // sgd alone, as momentum is
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // the adams alone
  // Whether weight decay takes hold of all parameters, whatever their facts.
  bool decays_all = false;
};

// Throws Error{kUsage} for weight decay under adam_release.
void validate(const OptimizerOptions& options);

// Scalars that every update reads.
struct StepInputs {
  Value lr;     // ()
  Value scale;  // (), multiplies every gradient; absent: 1
  Value step;   // () i32, counts updates from 0
};

// Appends the update of each parameter by its gradient, as its ParameterFacts say, and marks it and
// its states: "<parameter>.momentum"; ".m", ".v"; ".h"; or ".n", ".q" and ".d". A parameter whose
// gradient is absent, since the loss does not depend on it, and one that does not train stay as
// they are: neither updated nor decayed. Throws as validate does.
void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const Value> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options);

}  // namespace keel::optim

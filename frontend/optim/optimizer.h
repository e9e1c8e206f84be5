// Optimizers as graph nodes: one update node per parameter, with its moments as explicit state.
#pragma once

#include <span>
#include <vector>

#include "src/core/choice.h"
#include "src/ops/row_gradient.h"

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

// The treatment of table rows that have no gradient in a step, if the gradient of the table is rows
// (src/autodiff/gradient.h); other parameters are not affected.
//   exact  they are updated with a gradient of 0: moments fade and move the row on, weights decay.
//          The bits are those of the whole gradient. Sgd without momentum and adagrad, without
//          weight decay, then change nothing, and touch only the rows of the step.
//   lazy   such rows and their moments stay as they are. For the adams, rmsprop_graves, sgd with
//          momentum, and weight decay this is another rule than exact; for those that touch only
//          the rows of the step (see above) it is the same rule.
enum class EmbeddingUpdates { kExact, kLazy };
constexpr auto choice_words(EmbeddingUpdates) {
  return std::to_array<std::string_view>({"exact", "lazy"});
}

struct OptimizerOptions {
  Optimizer kind = Optimizer::kAdam;
  double momentum = 0, weight_decay = 0;
  bool nesterov = false;                          // only for sgd, like momentum
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // only for the adams
  // Whether weight decay applies to all parameters, whatever their facts.
  bool decays_all = false;
  EmbeddingUpdates embedding_updates = EmbeddingUpdates::kExact;
};

// Throws Error{kUsage} for weight decay under adam_release.
void validate(const OptimizerOptions& options);

// Scalars that every update reads.
struct StepInputs {
  Value lr;     // ()
  Value scale;  // (), multiplies every gradient; absent: 1
  Value step;   // () i32, counts updates from 0
};

// Appends the update of each parameter by its gradient, according to its ParameterFacts, and marks
// the updates of the parameter and of its states: "<parameter>.momentum"; ".m", ".v"; ".h"; or
// ".n", ".q" and ".d". A parameter whose gradient is absent, because the loss does not depend on
// it, and one that does not train are neither updated nor decayed. A gradient that is rows updates
// its table as `embedding_updates` says. Throws as validate does.
void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const ParameterGradient> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options);
// The same with whole gradients.
void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const Value> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options);

}  // namespace keel::optim

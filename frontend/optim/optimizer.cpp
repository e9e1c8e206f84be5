#include "frontend/optim/optimizer.h"

#include <vector>

#include "src/core/nearest.h"
#include "src/ops/optimizer_step.h"

namespace keel::optim {
namespace {

Value moment(Graph& g, Value parameter, const std::string& suffix,
             const std::optional<Bounds>& bounds = {}) {
  const TensorType type = g.type(parameter);
  return g.state(g.node(parameter).name + suffix, type, nullptr, bounds);  // zeros
}

void apply_sgd(Graph& g, Value p, Value gradient, const StepInputs& in,
               const OptimizerOptions& options) {
  const bool has_momentum = options.momentum > 0;
  const Value u = has_momentum ? moment(g, p, ".momentum") : Value{};
  const Value next = ops::sgd_step(g, {p, gradient, in.lr, in.scale, u},
                                   {options.momentum, options.weight_decay, options.nesterov});
  g.mark_update(p, next);
  if (has_momentum) g.mark_update(u, next.at(1));
}

void apply_adam(Graph& g, Value p, Value gradient, const StepInputs& in,
                const OptimizerOptions& options) {
  const Value m = moment(g, p, ".m"), v = moment(g, p, ".v", kNotNegative);
  const AdamAttrs attrs{options.beta1, options.beta2, options.eps, options.weight_decay,
                        options.name == "adamw"};
  const Value next = ops::adam_step(g, {p, gradient, in.lr, in.scale, in.step, m, v}, attrs);
  g.mark_update(p, next);
  g.mark_update(m, next.at(1));
  g.mark_update(v, next.at(2));
}

}  // namespace

void apply_optimizer(Graph& graph, std::span<const Value> parameters,
                     std::span<const Value> gradients, const StepInputs& inputs,
                     const OptimizerOptions& options) {
  const std::vector<std::string> names{"sgd", "adam", "adamw"};
  const bool is_sgd = options.name == "sgd";
  const bool is_known = is_sgd || options.name == "adam" || options.name == "adamw";
  check(is_known, ErrorKind::kUsage, "train.optimizer: {}", unknown_name(options.name, names));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto scope = graph.scope("update/" + graph.node(parameters[i]).name);
    is_sgd ? apply_sgd(graph, parameters[i], gradients[i], inputs, options)
           : apply_adam(graph, parameters[i], gradients[i], inputs, options);
  }
}

}  // namespace keel::optim

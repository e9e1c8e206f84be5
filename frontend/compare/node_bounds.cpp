#include "frontend/compare/node_bounds.h"

#include "frontend/compare/running_error.h"

namespace keel::compare {
namespace {

const BoundRules& bound_rules() {
  static const BoundRules rules = [] {
    BoundRules all;
    for (auto add : {add_linear_rules, add_elementwise_rules, add_loss_rules, add_attention_rules,
                     add_recurrent_rules, add_drawing_rules, add_mixture_rules, add_update_rules,
                     add_norm_rules, add_norm_gradient_rules}) {
      add(all);
    }
    return all;
  }();
  return rules;
}

}  // namespace

std::vector<Tensor> node_bounds(const JudgedNode& node) {
  const auto rule = bound_rules().find(node.node().op->name);
  check(rule != bound_rules().end(), ErrorKind::kInternal, "{}: no rule says what rounding may add",
        node.node().op->name);
  std::vector<Tensor> bounds;
  for (const Tensor& output : node.outputs) bounds.emplace_back(DType::kF64, output.shape());
  rule->second(node, bounds);
  return bounds;
}

}  // namespace keel::compare

#include "frontend/compare/bounds/node_bounds.h"

#include <set>

#include "frontend/compare/bounds/norm_view.h"
#include "frontend/compare/bounds/running_error.h"
#include "src/core/registry.h"
#include "src/ops/attention.h"
#include "src/ops/column_moments.h"
#include "src/ops/elementwise.h"
#include "src/ops/loss.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/relative_attention.h"

namespace keel::compare {
namespace {

BoundRules& bound_rules() {
  static BoundRules rules = [] {
    BoundRules all;
    for (auto add : {add_linear_rules, add_sum_rules, add_elementwise_rules, add_loss_rules,
                     add_linear_loss_rules, add_attention_rules, add_relative_rules,
                     add_multilinear_rules, add_recurrent_rules, add_drawing_rules,
                     add_mixture_rules, add_update_rules, add_norm_rules, add_norm_gradient_rules,
                     add_curve_rules, add_score_rules, add_column_rules}) {
      add(all);
    }
    return all;
  }();
  return rules;
}

// The bounds of output 0 where it is rounded to bf16 as it is stored. What more is known of a sum
// says nothing of the rounded one.
void add_narrowing(const ComparedNode& node, NodeBounds& bounds) {
  for (std::size_t e = 0; e < node.out(0).size(); ++e) {
    double& bound = bounds[0].as<double>()[e];
    bound = apart_in_bf16(node.out(0)[e], bound);
  }
  bounds.usual.clear();
  bounds.deviation.clear();
}

}  // namespace

NodeBounds node_bounds(const ComparedNode& node) {
  const std::string_view op = node.node().op->name;
  const auto rule = bound_rules().find(op);
  check(rule != bound_rules().end(), ErrorKind::kInternal, "{}: no rule says what rounding may add",
        op);
  NodeBounds bounds;
  for (const Tensor& output : node.outputs) {
    bounds.largest.emplace_back(DType::kF64, output.shape());
  }
  const BoundRule general = node.is_external() ? general_norm_rule(node.node()) : nullptr;
  (general ? general : rule->second)(node, bounds);
  if (node.node().is_bf16) add_narrowing(node, bounds);
  return bounds;
}

void add_rule(std::string_view op, BoundRule rule) {
  expect_not_frozen("bound", op);
  bound_rules().emplace(op, rule);
}

bool takes_input_error(const Node& node, int input) {
  using In = CrossEntropyInput;
  if (node.op == &kCrossEntropyBackward) {
    return input == In::kLogSumExp || input == In::kDmean || input == In::kDsum;
  }
  if (elementwise_code(*node.op) || node.op == &kFusedElementwise) return true;
  if (node.op->keeps_on_guard) {
    return input == UpdateInput::kLr || input == UpdateInput::kScale;
  }
  if (node.op == &kAttentionBackward) return input == AttentionInput::kLse;
  if (node.op == &kRelativeAttentionBackward) return input == RelativeAttentionInput::kLse;
  if (general_norm_rule(node) == nullptr || node.op->forward == nullptr) return false;
  const NormPlaces places(*node.op);
  return input == places.d_mean || input == places.d_rstd;
}

bool has_general_rule(const Node& node) {
  if (const OpInfo* norm = forward_norm(*node.op)) {
    return norm->norm->curve != nullptr || is_plain_norm(*node.op);
  }
  // Ops that only keel has.
  static const std::set<std::string_view> kept{"order_violation",
                                               "order_violation_backward",
                                               "attention_window",
                                               "attention_window_backward",
                                               "filter_bank",
                                               "filter_bank_backward",
                                               "norm_noise",
                                               "norm_noise_backward",
                                               "weight_norm",
                                               "weight_norm_backward",
                                               "rmsprop_step",
                                               "mixture_density",
                                               "random_normal",
                                               "mixture_density_backward",
                                               "multilinear_attention",
                                               "multilinear_attention_backward",
                                               "linear_cross_entropy",
                                               "linear_cross_entropy_backward",
                                               "linear_cross_entropy_step"};
  const bool gives_sums = node.op->outputs == DTypes(DType::kF64);
  return !gives_sums && !kept.contains(node.op->name);
}

}  // namespace keel::compare

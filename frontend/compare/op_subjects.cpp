// Every op, alone in a small graph.
#include <algorithm>

#include "frontend/compare/op_drafts.h"
#include "src/core/nearest.h"
#include "src/ops/elementwise.h"
#include "src/ops/op_table.h"

namespace keel::compare {
namespace {

// An element-wise op on positive operands, where all of them are defined.
void build_elementwise(Draft& d, EwCode code) {
  std::vector<Value> operands;
  for (int i = 0; i < arity(code); ++i) {
    const bool is_condition = code == EwCode::kSelect && i == 0;
    operands.push_back(is_condition ? d.mask({9, 33})
                                    : d.positive(i == 1 ? Shape{33} : Shape{9, 33}));
  }
  if (code == EwCode::kScale)
    return void(d.differentiate({ops::scale(d.graph, operands[0], 1.7, -0.3)}));
  if (code == EwCode::kCast)
    return void(d.differentiate({ops::cast(d.graph, d.mask({9, 33}), DType::kF32)}));
  const Value y = ops::elementwise(d.graph, code, operands);
  if (is_floating(d.graph.type(y).dtype)) return void(d.differentiate({y}));
  d.mark({y});
}

// The op in whose subject this one runs: itself, or the forward that it is the backward of.
std::string subject_of(std::string_view op) {
  if (op == "greater_equal_backward" || op == "less_backward") return "maximum";
  const std::size_t backward = op.find("_backward");
  return std::string(op.substr(0, std::min(backward, op.size())));
}

// "layer_norm" is the norm "layernorm".
std::string norm_name(std::string name) {
  if (name != "pn_v") std::erase(name, '_');
  return name;
}

bool is_norm_op(const std::string& op) {
  return std::ranges::any_of(nn::norm_facts(),
                             [&](const nn::NormFacts& f) { return f.name == norm_name(op); });
}

}  // namespace

std::vector<std::string> subject_ops() {
  std::vector<std::string> names;
  for (const OpInfo* op : all_ops()) {
    if (op->view != View::kWhole) names.emplace_back(op->name);
  }
  return names;
}

bool has_own_subject(const std::string& op) { return subject_of(op) == op && !is_norm_op(op); }

Subjects op_subjects(std::string_view op, bool unfused) {
  const std::vector<std::string> names = subject_ops();
  check(std::ranges::count(names, op) > 0, ErrorKind::kUsage, "op: {}", unknown_name(op, names));
  const std::string forward = subject_of(op);
  if (is_norm_op(forward)) return norm_subjects(nn::Norm::parse(norm_name(forward)), unfused);
  Draft draft;
  if (const auto build = op_drafts().find(forward); build != op_drafts().end()) {
    build->second(draft);
  } else {
    build_elementwise(draft, *elementwise_code(*find_op(forward)));
    unfused = true;  // so that no neighbour joins it
  }
  Subjects subjects;
  subjects.push_back(draft.finish("op " + forward, unfused));
  return subjects;
}

}  // namespace keel::compare

// Every op, alone in a small graph.
#include <algorithm>

#include "frontend/compare/cases/op_cases.h"
#include "src/core/nearest.h"
#include "src/ops/elementwise.h"
#include "src/ops/op_table.h"

namespace keel::compare {
namespace {

// The operands of an element-wise op: positive, or of any size and sign that the op is defined for.
class Operands {
 public:
  Operands(CaseBuilder& d, EwCode code, bool is_large) : d_(d), code_(code), is_large_(is_large) {}

  Shape shape() const { return is_large_ ? Shape{4133, 19} : Shape{9, 33}; }
  // Operand 1 is stretched along the rows.
  Value sampled(int i) const {
    if (i == 0 && code_ == EwCode::kSelect) return d_.mask(shape());
    const Shape of = i == 1 ? Shape{shape().back()} : shape();
    return is_large_ ? d_.floats(kind(i), of) : d_.positive(of);
  }

 private:
  Sampled kind(int i) const {
    using enum EwCode;
    const bool is_divisor = code_ == kDiv && i == 1;
    if (is_divisor || code_ == kSqrt || code_ == kLog) return Sampled::kMagnitudes;
    return code_ == kExp ? Sampled::kNormal : Sampled::kMixed;
  }

  CaseBuilder& d_;
  EwCode code_;
  bool is_large_;
};

void build_elementwise(CaseBuilder& d, EwCode code, bool is_large) {
  const Operands all(d, code, is_large);
  if (code == EwCode::kCast) {
    return void(d.differentiate({ops::cast(d.graph, d.mask(all.shape()), DType::kF32)}));
  }
  std::vector<Value> operands;
  for (int i = 0; i < arity(code); ++i) operands.push_back(all.sampled(i));
  if (code == EwCode::kScale)
    return void(d.differentiate({ops::scale(d.graph, operands[0], 1.7, -0.3)}));
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

// The op's cases, or null where it is element-wise.
const OpCases* cases_of(const std::string& op) {
  const auto found = op_cases().find(op);
  if (found != op_cases().end()) return &found->second;
  check(elementwise_code(*find_op(op)).has_value(), ErrorKind::kUsage,
        "op {}: expected an op case that says how its inputs are sampled, got none", op);
  return nullptr;
}

// "layer_norm" is the norm "layernorm".
std::string norm_name(std::string name) {
  if (name != "pn_v") std::erase(name, '_');
  return name;
}

// The norm whose op it is, or null.
const nn::NormFacts* norm_of_op(const std::string& op) {
  const auto facts = nn::norm_facts();
  const auto found = std::ranges::find(facts, norm_name(op), &nn::NormFacts::name);
  return found == facts.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> subject_ops() {
  std::vector<std::string> names;
  for (const OpInfo* op : all_ops()) {
    if (op->view != View::kWhole) names.emplace_back(op->name);
  }
  return names;
}

bool has_own_subject(const std::string& op) {
  return subject_of(op) == op && norm_of_op(op) == nullptr;
}

Subjects op_subjects(std::string_view op, const LayerForm& form) {
  const std::vector<std::string> names = subject_ops();
  check(std::ranges::count(names, op) > 0, ErrorKind::kUsage, "op: {}", unknown_name(op, names));
  const std::string forward = subject_of(op);
  if (const nn::NormFacts* norm = norm_of_op(forward)) {
    return norm_subjects(nn::Norm::parse(norm->any_width()), form);
  }
  const bool is_large = form.size == CaseSize::kLarge;
  LayerForm case_form = form;
  CaseBuilder builder;
  if (const OpCases* cases = cases_of(forward)) {
    is_large ? cases->large(builder) : cases->small(builder);
  } else {
    build_elementwise(builder, *elementwise_code(*find_op(forward)), is_large);
    case_form.unfused = true;  // so that no neighbour joins it
  }
  Subjects subjects;
  subjects.push_back(builder.finish({"op " + forward, is_large ? "large" : "small"}, case_form));
  return subjects;
}

std::unique_ptr<GraphSubject> sized_subject(const std::string& op, std::int64_t n) {
  CaseBuilder builder;
  op_cases().at(op).sized(builder, n);
  return builder.finish({"op " + op, fmt::format("{} elements", n)}, {});
}

}  // namespace keel::compare

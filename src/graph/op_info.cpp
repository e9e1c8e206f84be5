#include "src/graph/op_info.h"

#include <algorithm>

#include "src/graph/graph.h"

namespace keel {

const TensorType& InferContext::input(int i) const {
  check(has(i), ErrorKind::kUsage, "[{}] input {}: expected a value, got none", op.name, i);
  return *inputs[i];
}

void InferContext::expect(bool holds, std::string_view what, const std::string& expected,
                          const std::string& got) const {
  check(holds, ErrorKind::kUsage, "[{}] {}: expected {}, got {}", op.name, what, expected, got);
}

void InferContext::expect_shape(int i, std::string_view what, const Shape& expected) const {
  expect(shape(i) == expected, what, expected.text(), shape(i).text());
}

void InferContext::expect_dtype(int i, std::string_view what, DType expected) const {
  expect(dtype(i) == expected, what, std::string(name_of(expected)),
         std::string(name_of(dtype(i))));
}

void InferContext::expect_floating(int i, std::string_view what) const {
  expect(is_floating(dtype(i)), what, "a floating type", std::string(name_of(dtype(i))));
}

int input_place(const OpInfo& op, std::string_view name) {
  const auto found = std::ranges::find(op.inputs, name, &OpInput::name);
  return found == op.inputs.end() ? -1 : int(found - op.inputs.begin());
}

int output_place(const OpInfo& op, std::string_view name) {
  const auto found = std::ranges::find(op.output_names, name);
  return found == op.output_names.end() ? -1 : int(found - op.output_names.begin());
}

std::optional<double> kept_by_batch(const Node& node) {
  if (node.kind != NodeKind::kOp || !node.op->norm) return std::nullopt;
  const auto kept = node.op->norm->kept;
  return kept == nullptr ? node.attrs.number("keep") : kept(node.attrs);
}

const OpInfo* forward_norm(const OpInfo& op) {
  if (op.norm) return &op;
  return op.forward != nullptr && op.forward->norm ? op.forward : nullptr;
}

std::string input_name(const OpInfo& op, int i) {
  if (op.inputs.empty()) return fmt::format("input {}", i);
  if (i < int(op.inputs.size())) return std::string(op.inputs[std::size_t(i)].name);
  return fmt::format("{} {}", op.inputs.back().name, i);
}

DTypes input_types(const OpInfo& op, int i) {
  if (op.inputs.empty()) return kFloatingTypes;
  return op.inputs[std::min(std::size_t(i), op.inputs.size() - 1)].types;
}

Attrs attrs_from_text(const OpInfo& op, std::string_view text) {
  try {
    return op.attrs.with(text);
  } catch (const Error& error) {
    fail(error.kind(), "[{}] {}", op.name, error.what());
  }
}

BackwardContext::BackwardContext(Graph& g, int node, std::span<const Value> output_gradients,
                                 std::span<const bool> needed, StateValues& states)
    : graph(g),
      node_(node),
      output_gradients_(output_gradients),
      needed_(needed),
      states_(states),
      input_gradients_(g.node(node).inputs.size()) {}

Value BackwardContext::input(int i) const {
  const auto& inputs = graph.node(node_).inputs;
  return i < int(inputs.size()) ? inputs[i] : Value{};
}

Value BackwardContext::state(int i) const {
  const auto changed = states_.find(input(i));
  return changed == states_.end() ? input(i) : changed->second;
}

const TensorType& BackwardContext::type(Value v) const { return graph.type(v); }
const Attrs& BackwardContext::attrs() const { return graph.node(node_).attrs; }
bool BackwardContext::needs(int i) const { return input(i).valid() && needed_[i]; }

}  // namespace keel

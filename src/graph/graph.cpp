#include "src/graph/graph.h"

#include <algorithm>
#include <utility>

namespace keel {

Value Graph::push(Node node) {
  names_.try_emplace(node.name, Name{.node = size()});
  nodes_.push_back(std::move(node));
  return {size() - 1, 0};
}

Value Graph::leaf(NodeKind kind, const std::string& name, const TensorType& type) {
  check(!names_.contains(name), ErrorKind::kUsage, "graph: the name '{}' is taken", name);
  Node node;
  node.kind = kind;
  node.name = name;
  node.outputs = {type};
  return push(std::move(node));
}

Value Graph::input(const std::string& name, const TensorType& type) {
  return leaf(NodeKind::kInput, name, type);
}

Value Graph::parameter(const std::string& name, const TensorType& type, Initializer initializer,
                       const ParameterFacts& facts) {
  const Value v = leaf(NodeKind::kParameter, name, type);
  nodes_.back().initializer = std::move(initializer);
  nodes_.back().facts = facts;
  return v;
}

Value Graph::state(const std::string& name, const TensorType& type, Initializer initializer,
                   const std::optional<Bounds>& bounds) {
  const Value v = leaf(NodeKind::kState, name, type);
  nodes_.back().initializer = std::move(initializer);
  nodes_.back().bounds = bounds;
  return v;
}

Value Graph::derived(const std::string& name, const TensorType& type) {
  const Value v = leaf(NodeKind::kState, name, type);
  nodes_.back().is_cached = true;
  return v;
}

Value Graph::carry(const std::string& name, const TensorType& type) {
  return leaf(NodeKind::kCarry, name, type);
}

Value Graph::constant(Tensor value) {
  const Value v = leaf(NodeKind::kConstant, unique_name("constant"), value.type());
  nodes_.back().constant = std::make_shared<const Tensor>(std::move(value));
  return v;
}

Value Graph::constant(double value, DType dtype) {
  return constant(Tensor::of<double>({}, {value}).to(dtype));
}

Value Graph::add(const OpInfo& op, std::vector<Value> inputs, Attrs attrs) {
  const std::string asked = std::exchange(next_name_, {});
  std::vector<const TensorType*> types;
  for (Value v : inputs) {
    check(v.node < size(), ErrorKind::kUsage, "[{}] an input is not of this graph", op.name);
    types.push_back(v.valid() ? &type(v) : nullptr);
  }
  Node node;
  node.name = unique_name(asked.empty() ? op.name : std::string_view(asked));
  try {
    node.outputs = op.infer({op, types, attrs});
  } catch (const Error& error) {
    const std::string_view what = error.what();
    const std::string op_name = what.starts_with('[') ? "" : fmt::format("[{}] ", op.name);
    fail(error.kind(), "{}{} (node {})", op_name, what, node.name);
  }
  const std::size_t named = op.output_names.size(), made = node.outputs.size();
  check(named == 0 || named == made, ErrorKind::kInternal,
        "[{}] expected an output for each of {} names, got {}", op.name, named, made);
  node.op = &op;
  node.attrs = std::move(attrs);
  node.inputs = std::move(inputs);
  return push(std::move(node));
}

Value Graph::append(const Node& node, std::vector<Value> inputs) {
  Node copy = node;
  copy.inputs = std::move(inputs);
  return push(std::move(copy));
}

void Graph::narrow_result(Value result) {
  check(result.valid() && result.node < size() && result.port == 0, ErrorKind::kUsage,
        "narrow_result: expected output 0 of a node");
  Node& node = nodes_[std::size_t(result.node)];
  const DType dtype = node.outputs[0].dtype;
  check(node.kind == NodeKind::kOp && dtype == DType::kF32, ErrorKind::kUsage,
        "result of {}: expected f32 of an op to be rounded to bf16, got {}", node.name,
        name_of(dtype));
  node.outputs[0].dtype = DType::kBF16;
  node.is_bf16 = true;
}

void Graph::mark_output(const std::string& name, Value value) {
  check(value.valid() && value.node < size(), ErrorKind::kUsage, "output {}: expected a value",
        name);
  outputs_.push_back({name, value});
}

void Graph::mark_update(Value leaf, Value next) {
  const Node& target = node(leaf);
  check(persists(target.kind), ErrorKind::kUsage,
        "update of {}: expected a parameter, state or carry", target.name);
  check(type(leaf) == type(next), ErrorKind::kUsage, "update of {}: expected {}, got {}",
        target.name, type(leaf).text(), type(next).text());
  const bool is_first = next_.try_emplace(leaf.node, next).second;
  check(is_first, ErrorKind::kUsage, "update of {}: it is updated twice", target.name);
  updates_.push_back({leaf, next});
}

void Graph::replace_update(Value leaf, Value next) {
  const auto marked = std::ranges::find(updates_, leaf, &Update::leaf);
  check(marked != updates_.end(), ErrorKind::kUsage, "update of {}: expected one to replace",
        node(leaf).name);
  check(type(leaf) == type(next), ErrorKind::kUsage, "update of {}: expected {}, got {}",
        node(leaf).name, type(leaf).text(), type(next).text());
  marked->next = next_[leaf.node] = next;
}

std::string Graph::unique_name(std::string_view base) {
  const std::string wanted = prefix_ + std::string(base);
  const auto taken = names_.find(wanted);
  if (taken == names_.end()) return wanted;
  // Names are never given back, so the numbers below next_number stay taken.
  for (int& number = taken->second.next_number;; ++number) {
    std::string numbered = fmt::format("{}.{}", wanted, number);
    if (!names_.contains(numbered)) return numbered;
  }
}

std::vector<Update> Graph::take_updates() {
  next_.clear();
  return std::exchange(updates_, {});
}

Value Graph::next_of(Value leaf) const {
  const auto found = next_.find(leaf.node);
  return found == next_.end() ? Value{} : found->second;
}

Value Graph::find_leaf(const std::string& name) const {
  const auto found = names_.find(name);
  const bool is_leaf = found != names_.end() && node(found->second.node).kind != NodeKind::kOp;
  return is_leaf ? Value{found->second.node} : Value{};
}

std::vector<Value> Graph::leaves(NodeKind kind) const {
  std::vector<Value> result;
  for (int i = 0; i < size(); ++i) {
    if (node(i).kind == kind) result.push_back({i});
  }
  return result;
}

}  // namespace keel

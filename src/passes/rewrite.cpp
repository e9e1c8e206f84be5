#include "src/passes/rewrite.h"

#include "src/graph/next_name.h"
#include "src/ops/elementwise.h"

namespace keel {

PerNode<bool> find_live(const Graph& graph) {
  PerNode<bool> live(graph);
  for (const NamedValue& output : graph.outputs()) live[output.value.node] = true;
  for (const Update& update : graph.updates()) live[update.next.node] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kOp && node.kind != NodeKind::kConstant) live[i] = true;
    if (!live[i]) continue;
    for (Value v : node.inputs) {
      if (v.valid()) live[v.node] = true;
    }
  }
  return live;
}

PerValue<int> count_uses(const Graph& graph) {
  const PerNode<bool> live = find_live(graph);
  PerValue<int> uses(graph);
  const auto use = [&](Value v) {
    if (v.valid()) ++uses[v];
  };
  for (int i = 0; i < graph.size(); ++i) {
    if (!live[i]) continue;
    for (Value v : graph.node(i).inputs) use(v);
  }
  for (const NamedValue& output : graph.outputs()) use(output.value);
  for (const Update& update : graph.updates()) {
    use(update.leaf);
    use(update.next);
  }
  return uses;
}

Value Rewriter::operator()(Value old) const {
  if (!old.valid()) return {};
  const Value first = map_[old.node];
  return first.at(first.port + old.port);
}

std::vector<Value> Rewriter::inputs_of(const Node& node) const {
  std::vector<Value> inputs;
  for (Value v : node.inputs) inputs.push_back((*this)(v));
  return inputs;
}

void Rewriter::copy(int index) {
  const Node& node = source_.node(index);
  map_[index] = target_.append(node, inputs_of(node));
}

void Rewriter::replace(int index, const OpInfo& op, std::vector<Value> new_inputs, Attrs attrs) {
  const NextName name(target_, source_.node(index).name);
  map_[index] = target_.add(op, std::move(new_inputs), std::move(attrs));
}

void Rewriter::forward(int index, Value existing) { map_[index] = existing; }

// Updates run one after the other, so what a leaf takes must not be another leaf, or a view of one.
Value Rewriter::computed(Value next) {
  Value root = next;
  while (is_view(target_.node(root))) {
    root = target_.node(root).inputs[0];
  }
  if (target_.node(root).kind == NodeKind::kOp) return next;
  return ops::cast(target_, next, target_.type(next).dtype);
}

Graph Rewriter::finish() {
  for (const NamedValue& output : source_.outputs()) {
    target_.mark_output(output.name, (*this)(output.value));
  }
  for (const Update& update : source_.updates()) {
    target_.mark_update((*this)(update.leaf), computed((*this)(update.next)));
  }
  return std::move(target_);
}

}  // namespace keel

#include "frontend/compare/walk/backend_trace.h"

namespace keel::compare {
namespace {

// Whether a leaf has to begin: a carry does so with every batch of another shape.
bool begins(const Feeds& leaves, const Node& node) {
  const auto found = leaves.find(node.name);
  return found == leaves.end() || found->second.shape() != node.outputs[0].shape;
}

}  // namespace

PerNode<int> last_readers(const Graph& graph, const PerNode<bool>& needed) {
  PerNode<int> last(graph, -1);
  for (int i = 0; i < graph.size(); ++i) {
    if (!needed[i]) continue;
    last[i] = i;
    for (Value v : graph.node(i).inputs) {
      if (v.valid()) last[v.node] = i;
    }
  }
  return last;
}

Tensor BackendTrace::kept(const Tensor& value, DType declared) const {
  if (!declared_) return value.to(backend_.storage(declared));
  return value.to(declared);
}

void BackendTrace::begin(const Graph& graph, const SubjectStep& step, const Subject& subject) {
  graph_ = &graph;
  values_.clear();
  values_.resize(std::size_t(graph.size()));
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind == NodeKind::kOp) continue;
    const DType dtype = node.outputs[0].dtype;
    if (persists(node.kind)) {
      if (begins(leaves_, node)) leaves_[node.name] = kept(first_value(subject, node), dtype);
      continue;
    }
    const Tensor* given = node.constant.get();
    if (node.kind == NodeKind::kInput) {
      const auto found = step.feeds.find(node.name);
      check(found != step.feeds.end(), ErrorKind::kInternal, "{}: nothing is fed", node.name);
      given = &found->second;
    }
    // An input is what float32 holds of it, even where the reference could hold more.
    values_[std::size_t(i)].push_back(kept(given->to(dtype), dtype));
  }
}

const Tensor& BackendTrace::value(Value v) const {
  const Node& node = graph_->node(v);
  if (persists(node.kind)) return leaves_.at(node.name);
  return values_[std::size_t(v.node)][std::size_t(v.port)];
}

std::vector<const Tensor*> BackendTrace::inputs(const Node& node) const {
  std::vector<const Tensor*> result;
  for (Value v : node.inputs) result.push_back(v.valid() ? &value(v) : nullptr);
  return result;
}

void BackendTrace::set(int node, std::vector<Tensor> outputs) {
  const std::vector<TensorType>& types = graph_->node(node).outputs;
  std::vector<Tensor>& values = values_[std::size_t(node)];
  values.clear();
  for (std::size_t port = 0; port < outputs.size(); ++port) {
    const DType kept_as = declared_ ? types[port].dtype : backend_.storage(types[port].dtype);
    const bool fits = outputs[port].dtype() == kept_as;
    values.push_back(fits ? std::move(outputs[port]) : outputs[port].to(kept_as));
  }
}

void BackendTrace::release(int node, const PerNode<int>& last) {
  const auto drop = [&](int i) {
    if (last[i] == node) std::vector<Tensor>().swap(values_[std::size_t(i)]);
  };
  drop(node);
  for (Value v : graph_->node(node).inputs) {
    if (v.valid()) drop(v.node);
  }
}

void BackendTrace::end() {
  for (auto& [name, value] : next_) leaves_[name] = std::move(value);
  next_.clear();
}

}  // namespace keel::compare

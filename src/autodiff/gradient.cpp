#include "src/autodiff/gradient.h"

#include <algorithm>
#include <map>

#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel {
namespace {

class ReverseWalk {
 public:
  ReverseWalk(Graph& graph, Value loss, std::span<const Value> wrt)
      : graph_(graph), depends_(std::size_t(graph.size()), false) {
    for (Value v : wrt) depends_[std::size_t(v.node)] = true;
    for (int i = 0; i < graph.size(); ++i) {
      for (Value input : graph.node(i).inputs) {
        if (input.valid() && depends_[std::size_t(input.node)]) depends_[std::size_t(i)] = true;
      }
    }
    gradients_[loss] = graph.constant(1.0, graph.type(loss).dtype);
  }

  void run(int last) {
    for (int i = last; i >= 0; --i) visit(i);
  }

  Value gradient_of(Value v) const {
    const auto found = gradients_.find(v);
    return found == gradients_.end() ? Value{} : found->second;
  }

 private:
  void visit(int index) {
    const Node& node = graph_.node(index);
    if (node.kind != NodeKind::kOp || !depends_[std::size_t(index)]) return;
    std::vector<Value> dy;
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      dy.push_back(gradient_of({index, port}));
    }
    const bool reached = std::ranges::any_of(dy, [](Value v) { return v.valid(); });
    const bool goes_on = std::ranges::any_of(
        node.inputs, [&](Value v) { return v.valid() && depends_[std::size_t(v.node)]; });
    if (!reached || !goes_on) return;
    check(node.op->backward != nullptr, ErrorKind::kUsage,
          "[{}] has no backward (node {}); stop the gradient before it", node.op->name, node.name);
    accumulate(index, dy);
  }

  void accumulate(int index, const std::vector<Value>& dy) {
    const Node& node = graph_.node(index);
    const std::size_t count = node.inputs.size();
    auto needed = std::make_unique<bool[]>(count);
    for (std::size_t i = 0; i < count; ++i) {
      needed[i] = node.inputs[i].valid() && depends_[std::size_t(node.inputs[i].node)];
    }
    BackwardContext context(graph_, index, dy, {needed.get(), count});
    const auto names = graph_.scope(node.name + ".backward");
    node.op->backward(context);
    for (std::size_t i = 0; i < count; ++i) {
      if (needed[i] && context.result()[i].valid()) add(node.inputs[i], context.result()[i]);
    }
  }

  void add(Value v, Value gradient) {
    const auto [place, is_first] = gradients_.try_emplace(v, gradient);
    if (!is_first) place->second = ops::add(graph_, place->second, gradient);
  }

  Graph& graph_;
  std::vector<bool> depends_;
  std::map<Value, Value> gradients_;
};

}  // namespace

std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt) {
  check(graph.shape(loss).elements() == 1 && graph.shape(loss).rank() == 0, ErrorKind::kUsage,
        "[gradient] loss: expected a scalar, got {}", graph.shape(loss).text());
  const int last = loss.node;
  ReverseWalk walk(graph, loss, wrt);
  walk.run(last);
  std::vector<Value> result;
  for (Value v : wrt) {
    Value dv = walk.gradient_of(v);
    if (!dv.valid()) dv = graph.constant(Tensor(graph.type(v)));
    result.push_back(dv);
  }
  return result;
}

}  // namespace keel

#include "src/autodiff/gradient.h"

#include <algorithm>

#include "src/autodiff/table_rows.h"
#include "src/graph/tables.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel {
namespace {

class ReverseWalk {
 public:
  // The gradients of `tables` become rows.
  ReverseWalk(Graph& graph, Value loss, std::span<const Value> wrt, TableRows tables = {})
      : graph_(graph), depends_(graph), gradients_(graph), tables_(std::move(tables)) {
    for (Value v : wrt) depends_[v.node] = true;
    for (int i = 0; i < graph.size(); ++i) {
      for (Value input : graph.node(i).inputs) {
        if (input.valid() && depends_[input.node]) depends_[i] = true;
      }
    }
    gradients_[loss] = graph.constant(1.0, graph.type(loss).dtype);
  }

  void run(int last) {
    for (int i = last; i >= 0; --i) visit(i);
  }

  Value gradient_of(Value v) const { return gradients_[v]; }
  ParameterGradient rows_or_gradient_of(Value v) {
    if (tables_.contains(v)) return tables_.joined(graph_, v);
    return gradient_of(v);
  }
  std::vector<Update> states() const {
    std::vector<Update> updates;
    for (const auto& [state, next] : states_) updates.push_back({state, next});
    return updates;
  }

 private:
  void visit(int index) {
    const Node& node = graph_.node(index);
    if (node.kind != NodeKind::kOp || !depends_[index]) return;
    std::vector<Value> dy;
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      dy.push_back(gradient_of({index, port}));
    }
    const bool reached = std::ranges::any_of(dy, [](Value v) { return v.valid(); });
    const bool goes_on =
        std::ranges::any_of(node.inputs, [&](Value v) { return v.valid() && depends_[v.node]; });
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
      needed[i] = node.inputs[i].valid() && depends_[node.inputs[i].node];
    }
    BackwardContext context(graph_, index, dy, {needed.get(), count}, states_);
    const auto names = graph_.scope(node.name + ".backward");
    if (tables_.take(context, node)) return;
    node.op->backward(context);
    for (std::size_t i = 0; i < count; ++i) {
      if (needed[i] && context.result()[i].valid()) add(node.inputs[i], context.result()[i]);
    }
  }

  void add(Value v, Value gradient) {
    Value& sum = gradients_[v];
    sum = sum.valid() ? ops::add(graph_, sum, gradient) : gradient;
  }

  Graph& graph_;
  PerNode<bool> depends_;      // on one of the values that gradients are wanted of
  PerValue<Value> gradients_;  // so far; absent where there is none yet
  StateValues states_;
  TableRows tables_;
};

void expect_scalar(const Graph& graph, Value loss) {
  check(graph.shape(loss).elements() == 1 && graph.shape(loss).rank() == 0, ErrorKind::kUsage,
        "[gradient] loss: expected a scalar, got {}", graph.shape(loss).text());
}

}  // namespace

Gradients differentiate(Graph& graph, Value loss, std::span<const Value> wrt, Unreached unreached) {
  expect_scalar(graph, loss);
  ReverseWalk walk(graph, loss, wrt);
  walk.run(loss.node);
  Gradients result;
  for (Value v : wrt) {
    const Value dv = walk.gradient_of(v);
    const bool is_zero = !dv.valid() && unreached == Unreached::kZero;
    result.of.push_back(is_zero ? graph.constant(Tensor(graph.type(v))) : dv);
  }
  result.states = walk.states();
  return result;
}

ParameterGradients differentiate_by_rows(Graph& graph, Value loss, std::span<const Value> wrt,
                                         const RowChoice& choice) {
  expect_scalar(graph, loss);
  ReverseWalk walk(graph, loss, wrt, TableRows(graph, wrt, choice.least_rows_per_id));
  walk.run(loss.node);
  ParameterGradients result;
  for (Value v : wrt) result.of.push_back(walk.rows_or_gradient_of(v));
  result.states = walk.states();
  return result;
}

std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt) {
  return differentiate(graph, loss, wrt, Unreached::kZero).of;
}

}  // namespace keel

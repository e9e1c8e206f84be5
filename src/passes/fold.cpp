// Constant folding and removal of ops that change nothing.
#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

constexpr std::int64_t kMaxFoldedElements = 1024;

bool is_constant(const Graph& g, Value v) { return g.node(v).kind == NodeKind::kConstant; }

// Index into a tensor of shape `from` of element `index` of the shape `to` it broadcasts to.
std::int64_t broadcast_index(std::int64_t index, const Shape& to, const Shape& from) {
  const auto strides = from.strides();
  std::int64_t result = 0;
  for (int axis = to.rank() - 1; axis >= 0; --axis) {
    const std::int64_t place = index % to[axis];
    const int own = axis - (to.rank() - from.rank());
    if (own >= 0 && from[own] != 1) result += place * strides[std::size_t(own)];
    index /= to[axis];
  }
  return result;
}

Tensor evaluate_node(const Graph& g, const Node& node, EwCode code,
                     const std::vector<Value>& inputs) {
  const TensorType& type = node.outputs[0];
  const ScaleAttrs scale = code == EwCode::kScale ? node.attrs.as<ScaleAttrs>() : ScaleAttrs{};
  Tensor result(DType::kF64, type.shape);
  for (std::int64_t e = 0; e < type.shape.elements(); ++e) {
    std::array<double, 3> operands{};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Tensor& operand = *g.node(inputs[i]).constant;
      operands[i] = operand.at(broadcast_index(e, type.shape, operand.shape()));
    }
    result.as<double>()[std::size_t(e)] = evaluate(code, operands, scale);
  }
  return result.to(type.dtype);
}

class Folder {
 public:
  explicit Folder(const Graph& source) : rewriter_(source) {}

  Graph run() {
    return rewriter_.run([&](int i) { visit(i); });
  }

 private:
  void visit(int index) {
    const Node& node = rewriter_.source().node(index);
    if (node.kind != NodeKind::kOp) return rewriter_.copy(index);
    if (const auto code = elementwise_code(*node.op)) return visit_elementwise(index, *code);
    if (node.op == &kReshape) return visit_reshape(index);
    rewriter_.copy(index);
  }

  void visit_elementwise(int index, EwCode code) {
    const Node& node = rewriter_.source().node(index);
    std::vector<Value> inputs = rewriter_.inputs_of(node);
    Graph& g = rewriter_.target();
    const bool small = node.outputs[0].shape.elements() <= kMaxFoldedElements;
    if (small && std::ranges::all_of(inputs, [&](Value v) { return is_constant(g, v); })) {
      const auto scope = g.scope(node.name);  // names of constants yet to be copied stay free
      return rewriter_.forward(index, g.constant(evaluate_node(g, node, code, inputs)));
    }
    if (code == EwCode::kScale) return visit_scale(index, inputs[0]);
    skip_broadcasts(node, inputs);
    rewriter_.replace(index, *node.op, inputs, node.attrs);
  }

  // scale(1, 0) is its operand; a scale of a scale is one scale.
  void visit_scale(int index, Value x) {
    const Node& node = rewriter_.source().node(index);
    ScaleAttrs outer = node.attrs.as<ScaleAttrs>();
    const Node& inner = rewriter_.target().node(x);
    if (inner.op == &elementwise_op(EwCode::kScale)) {
      const auto& first = inner.attrs.as<ScaleAttrs>();
      outer.offset += outer.factor * first.offset;
      outer.factor *= first.factor;
      x = inner.inputs[0];
    }
    if (outer.factor == 1 && outer.offset == 0) return rewriter_.forward(index, x);
    rewriter_.replace(index, *node.op, {x}, outer);
  }

  // Element-wise ops stretch their operands themselves; a broadcast before them only costs memory.
  void skip_broadcasts(const Node& node, std::vector<Value>& inputs) {
    const Graph& g = rewriter_.target();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (g.node(inputs[i]).op != &kBroadcastTo) continue;
      std::vector<Value> shorter = inputs;
      shorter[i] = g.node(inputs[i]).inputs[0];
      Shape shape;
      for (Value v : shorter) shape = broadcast(shape, g.shape(v));
      if (shape == node.outputs[0].shape) inputs = shorter;
    }
  }

  void visit_reshape(int index) {
    const Node& node = rewriter_.source().node(index);
    Value x = rewriter_(node.inputs[0]);
    const Node& inner = rewriter_.target().node(x);
    if (inner.op == &kReshape) x = inner.inputs[0];
    if (rewriter_.target().shape(x) == node.outputs[0].shape) return rewriter_.forward(index, x);
    rewriter_.replace(index, kReshape, {x}, node.attrs);
  }

  Rewriter rewriter_;
};

}  // namespace

Graph fold_constants(const Graph& graph) { return Folder(graph).run(); }

}  // namespace keel

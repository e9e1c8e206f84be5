// Fusion puts bias and ReLU into products and convolutions, then joins chains of element-wise ops.
#include <algorithm>

#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

bool is_code(const Node& node, EwCode code) { return node.op == &elementwise_op(code); }

// Each old node that a later one absorbed is not copied; its value is never asked for again.
class EpilogueFusion {
 public:
  explicit EpilogueFusion(const Graph& source)
      : rewriter_(source), uses_(count_uses(source)), absorbed_(source) {
    const PerNode<bool> live = find_live(source);
    for (int i = 0; i < source.size(); ++i) {
      const int producer = live[i] ? absorbable(i) : -1;
      if (producer < 0) continue;
      absorbed_[producer] = true;
      has_work_ = true;
    }
  }

  bool has_work() const { return has_work_; }
  Graph run() {
    return rewriter_.run([&](int i) {
      if (absorbed_[i]) return;
      const int producer = absorbable(i);
      producer < 0 ? rewriter_.copy(i) : emit(i, producer);
    });
  }

 private:
  // The product (or bias add) that node i can be an epilogue of, or -1.
  int absorbable(int index) const {
    const Graph& g = rewriter_.source();
    const Node& node = g.node(index);
    if (node.kind != NodeKind::kOp) return -1;
    const bool relu = is_code(node, EwCode::kRelu), add = is_code(node, EwCode::kAdd);
    if (!relu && !add) return -1;
    const Value x = node.inputs[BinaryInput::kA];  // ReLU's one operand has this place too
    if (uses_[x] != 1) return -1;
    const Node& producer = g.node(x);
    if (relu && takes_relu(producer)) return x.node;
    if (relu && is_code(producer, EwCode::kAdd) && absorbable(x.node) >= 0) return x.node;
    if (!add || !takes_bias(producer)) return -1;
    const Shape& bias = g.shape(node.inputs[BinaryInput::kB]);
    return bias == Shape{g.shape(x).back()} ? x.node : -1;
  }

  static bool takes_relu(const Node& node) { return node.op == &kMatmul || node.op == &kConv2d; }
  static bool takes_bias(const Node& node) {
    return node.op == &kMatmul && !node.inputs[MatmulInput::kBias].valid() &&
           node.attrs.as<MatmulAttrs>().activation == Activation::kNone;
  }

  void emit(int index, int producer) {
    const Graph& g = rewriter_.source();
    bool relu = is_code(g.node(index), EwCode::kRelu);
    Value bias;
    if (is_code(g.node(producer), EwCode::kAdd)) {
      bias = g.node(producer).inputs[BinaryInput::kB];
      producer = g.node(producer).inputs[BinaryInput::kA].node;
    } else if (!relu) {
      bias = g.node(index).inputs[BinaryInput::kB];
    }
    const Node& product = g.node(producer);
    std::vector<Value> inputs = rewriter_.inputs_of(product);
    if (bias.valid()) inputs[MatmulInput::kBias] = rewriter_(bias);
    rewriter_.replace(index, *product.op, inputs, with_activation(product, relu));
  }

  static Attrs with_activation(const Node& product, bool relu) {
    if (!relu) return product.attrs;
    if (product.op == &kMatmul) {
      MatmulAttrs attrs = product.attrs.as<MatmulAttrs>();
      attrs.activation = Activation::kRelu;
      return attrs;
    }
    ConvAttrs attrs = product.attrs.as<ConvAttrs>();
    attrs.activation = Activation::kRelu;
    return attrs;
  }

  Rewriter rewriter_;
  PerValue<int> uses_;
  PerNode<bool> absorbed_;
  bool has_work_ = false;
};

bool is_fusable(const Node& node) {
  if (node.kind != NodeKind::kOp) return false;
  const auto code = elementwise_code(*node.op);
  const bool is_chain = node.op == &kFusedElementwise;
  const bool is_plain = code && *code != EwCode::kLess && *code != EwCode::kEqual &&
                        *code != EwCode::kSelect && *code != EwCode::kCast;
  return is_chain || is_plain;
}

// A program under construction: its operands in the new graph and its steps.
struct Chain {
  std::vector<Value> operands;
  EwProgram program;
};

// `outer` with the result of `inner` in place of its operand `slot`.
Chain join(const Chain& outer, std::size_t slot, const Chain& inner) {
  Chain joined;
  joined.operands = inner.operands;
  std::vector<std::int16_t> place(outer.operands.size());
  for (std::size_t i = 0; i < outer.operands.size(); ++i) {
    if (i == slot) continue;
    const auto found = std::ranges::find(joined.operands, outer.operands[i]);
    place[i] = std::int16_t(found - joined.operands.begin());
    if (found == joined.operands.end()) joined.operands.push_back(outer.operands[i]);
  }
  const int inputs = int(joined.operands.size());
  const int inner_steps = int(inner.program.steps.size());
  place[slot] = std::int16_t(inputs + inner_steps - 1);
  joined.program.inputs = inputs;
  const auto append = [&](EwStep step, int own_inputs, int first_step, const auto& operand_place) {
    for (std::int16_t& s : step.source) {
      if (s < 0) continue;
      s = s < own_inputs ? operand_place(s) : std::int16_t(s - own_inputs + inputs + first_step);
    }
    joined.program.steps.push_back(step);
  };
  for (const EwStep& step : inner.program.steps) {
    append(step, inner.program.inputs, 0, [](std::int16_t s) { return s; });
  }
  for (const EwStep& step : outer.program.steps) {
    append(step, outer.program.inputs, inner_steps,
           [&](std::int16_t s) { return place[std::size_t(s)]; });
  }
  return joined;
}

// Joins every element-wise node into its only reader, when that is element-wise of equal shape.
class ChainFusion {
 public:
  explicit ChainFusion(const Graph& source) : rewriter_(source), uses_(count_uses(source)) {}

  Graph run() {
    const Graph& g = rewriter_.source();
    return remove_dead_code(
        rewriter_.run([&](int i) { is_fusable(g.node(i)) ? visit(i) : rewriter_.copy(i); }));
  }

 private:
  void visit(int index) {
    const Graph& g = rewriter_.source();
    const Node& node = g.node(index);
    const auto may_join = [&](Value old) {
      return uses_[old] == 1 && is_fusable(g.node(old)) && g.type(old) == node.outputs[0];
    };
    if (std::ranges::none_of(node.inputs, may_join)) return rewriter_.copy(index);
    Chain chain{rewriter_.inputs_of(node), program_of(node)};
    const std::size_t own_steps = chain.program.steps.size();
    for (Value old : node.inputs) {
      if (may_join(old)) try_join(chain, rewriter_(old));
    }
    if (chain.program.steps.size() == own_steps) return rewriter_.copy(index);
    rewriter_.replace(index, kFusedElementwise, chain.operands, FusedAttrs{chain.program});
  }

  void try_join(Chain& chain, Value operand) {
    const auto slot = std::ranges::find(chain.operands, operand);
    const Node& inner = rewriter_.target().node(operand);
    const Chain joined =
        join(chain, std::size_t(slot - chain.operands.begin()), {inner.inputs, program_of(inner)});
    if (fits_kernels(joined.program)) chain = joined;
  }

  Rewriter rewriter_;
  PerValue<int> uses_;
};

}  // namespace

Graph fuse(const Graph& graph) {
  EpilogueFusion epilogues(graph);
  return epilogues.has_work() ? ChainFusion(epilogues.run()).run() : ChainFusion(graph).run();
}

}  // namespace keel

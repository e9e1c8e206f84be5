#include "src/passes/bf16_products.h"

#include <map>

#include "src/ops/attention.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/matmul.h"
#include "src/ops/relative_attention.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

// The input of a backward that may be the result of its forward rounded to bf16; -1: none. ReLU's
// asks only for its sign (a y of at most 2^-134, which is rounded to 0, loses its gradient).
// Attention's is the y of sum dy y, one rounding in each of whose terms is no more than those of
// its factors.
int rounded_result(const Node& node) {
  if (node.op == &elementwise_op(EwCode::kReluBackward)) return 1;
  if (node.op == &kAttentionBackward) return AttentionInput::kY;
  return node.op == &kRelativeAttentionBackward ? int(RelativeAttentionInput::kY) : -1;
}

class Narrower {
 public:
  explicit Narrower(const Graph& source) : rewriter_(source) {}

  Graph run() {
    return rewriter_.run([&](int i) { visit(i); });
  }

 private:
  void visit(int index) {
    const Node& node = rewriter_.source().node(index);
    if (node.op == &kDropout) return copy_dropout(index);
    const std::vector<std::size_t> factors = factors_of(node);
    const int result = rounded_result(node);
    if (factors.empty() && result < 0) return rewriter_.copy(index);
    std::vector<Value> inputs = rewriter_.inputs_of(node);
    if (rewriter_.target().type(inputs[0]).dtype != DType::kF32) return rewriter_.copy(index);
    for (const std::size_t i : factors) {
      if (inputs[i].valid()) inputs[i] = narrow(inputs[i]);
    }
    if (result >= 0) reread(node, inputs, std::size_t(result));
    rewriter_.replace(index, *node.op, inputs, node.attrs);
  }

  void copy_dropout(int index) {
    rewriter_.copy(index);
    const Node& node = rewriter_.source().node(index);
    dropped_[rewriter_(node.inputs[DropoutInput::kX])] = rewriter_({index, 0});
  }

  // Takes an input from its bf16 copy, if a product has asked for one: then the float32 need not be
  // kept from the forward to the backward.
  void reread(const Node& reader, std::vector<Value>& inputs, std::size_t place) {
    auto narrowed = narrowed_.find(inputs[place]);
    if (narrowed == narrowed_.end()) narrowed = narrowed_.find(kept_part(inputs));
    if (narrowed == narrowed_.end()) return;
    const auto scope = rewriter_.target().scope(reader.name);
    inputs[place] = ops::cast(rewriter_.target(), narrowed->second, DType::kF32);
  }

  // The part of y that a dropout keeps, where ReLU's backward has (dy, y) and dy comes from the
  // backward of that dropout: where it keeps nothing dy is 0, so the sign of y does not matter.
  // Otherwise absent.
  Value kept_part(const std::vector<Value>& inputs) {
    const Graph& g = rewriter_.target();
    const auto dropped = dropped_.find(inputs[1]);
    if (dropped == dropped_.end() || g.node(inputs[0]).op != &kDropoutBackward) return {};
    const auto& forward = g.node(dropped->second).attrs.as<DropoutAttrs>();
    const auto& backward = g.node(inputs[0]).attrs.as<DropoutAttrs>();
    const bool is_same = forward.stream == backward.stream && forward.seed == backward.seed;
    return is_same ? dropped->second : Value{};
  }

  // The value in bf16. Another shape of a value shares its cast.
  Value narrow(Value v) {
    Value& narrowed = narrowed_[v];
    if (narrowed.valid()) return narrowed;
    Graph& g = rewriter_.target();
    const Node& node = g.node(v);
    if (node.op == &kReshape) {
      const Value whole = narrow(node.inputs[0]);
      const auto scope = g.scope(node.name);
      return narrowed = ops::reshape(g, whole, g.shape(v));
    }
    const auto scope = g.scope(node.name);
    return narrowed = ops::cast(g, v, DType::kBF16);
  }

  Rewriter rewriter_;
  // For values of the new graph: their bf16, and the part of them that the last dropout keeps.
  std::map<Value, Value> narrowed_, dropped_;
};

}  // namespace

std::vector<std::size_t> factors_of(const Node& node) {
  using Loss = LinearLossInput;
  const auto is = [&](auto... op) { return ((node.op == op) || ...); };
  if (is(&kMatmul, &kConv2d, &kConv2dBackwardInput, &kConv2dBackwardWeight)) return {0, 1};
  if (is(&kAttention, &kAttentionBackward)) return {0, 1, 2};
  if (is(&kRelativeAttention, &kRelativeAttentionBackward)) return {0, 1, 2, 3, 4};
  if (is(&kLinearCrossEntropy, &kLinearCrossEntropyBackward)) {
    return {Loss::kX, Loss::kTable, Loss::kClusters};
  }
  return {};
}

Graph bf16_products(const Graph& graph) { return Narrower(graph).run(); }

}  // namespace keel

// A cast to bf16 becomes part of the kernel that computes what it rounds, a cast from bf16 part of
// the element-wise kernels that read it.
#include <algorithm>

#include "src/ops/elementwise.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

class CastFuser {
 public:
  CastFuser(const Graph& source, const ChooseNarrow& choose)
      : rewriter_(source), choose_(choose), is_bf16_(source) {
    const PerValue<int> uses = count_uses(source);
    const PerNode<bool> live = find_live(source);
    for (int i = 0; i < source.size(); ++i) {
      if (!live[i] || !is_rounding(i)) continue;
      const Value x = source.node(i).inputs[0];
      if (uses[x] == 1 && computes(x) && choose(source, source.node(x))) is_bf16_[x.node] = true;
    }
  }

  Graph run() {
    return remove_dead_code(rewriter_.run([&](int i) {
      if (is_rounding(i) && is_bf16_[source().node(i).inputs[0].node]) {
        return rewriter_.forward(i, rewriter_(source().node(i).inputs[0]));
      }
      copy(i);
      if (is_bf16_[i]) rewriter_.target().narrow_result(rewriter_({i, 0}));
    }));
  }

 private:
  const Graph& source() const { return rewriter_.source(); }

  bool is_cast(int index, DType from, DType to) const {
    const Node& node = source().node(index);
    return node.op == &elementwise_op(EwCode::kCast) && node.outputs[0].dtype == to &&
           source().type(node.inputs[0]).dtype == from;
  }
  bool is_rounding(int index) const { return is_cast(index, DType::kF32, DType::kBF16); }
  bool is_widening(Value v) const {
    return v.valid() && is_cast(v.node, DType::kBF16, DType::kF32);
  }

  void copy(int index) {
    const Node& node = source().node(index);
    const bool reads = may_read_narrow(node) &&
                       std::ranges::any_of(node.inputs, [&](Value v) { return is_widening(v); });
    if (!reads) return rewriter_.copy(index);
    std::vector<Value> inputs;
    for (Value v : node.inputs) {
      inputs.push_back(rewriter_(is_widening(v) ? source().node(v).inputs[0] : v));
    }
    rewriter_.replace(index, *node.op, inputs, node.attrs);
  }

  // Whether a node is an element-wise op that stays float32 beside operands of bf16.
  bool may_read_narrow(const Node& node) const {
    if (node.kind != NodeKind::kOp || node.outputs[0].dtype != DType::kF32) return false;
    const bool is_cast = node.op == &elementwise_op(EwCode::kCast);
    const bool is_plain = elementwise_code(*node.op) && node.op != &elementwise_op(EwCode::kSelect);
    if (is_cast || (!is_plain && node.op != &kFusedElementwise)) return false;
    const bool keeps_float = std::ranges::any_of(node.inputs, [&](Value v) {
      return source().type(v).dtype == DType::kF32 && !is_widening(v);
    });
    return keeps_float && choose_(source(), node);
  }

  // Whether a kernel writes the value, as the first output of its node.
  bool computes(Value x) const {
    const Node& node = source().node(x);
    return node.kind == NodeKind::kOp && x.port == 0 && !is_view(node);
  }

  Rewriter rewriter_;
  const ChooseNarrow& choose_;
  PerNode<bool> is_bf16_;
};

}  // namespace

Graph fuse_casts(const Graph& graph, const ChooseNarrow& choose) {
  return CastFuser(graph, choose).run();
}

}  // namespace keel

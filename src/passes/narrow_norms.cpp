#include "src/passes/narrow_norms.h"

#include <algorithm>
#include <map>
#include <set>

#include "src/ops/elementwise.h"
#include "src/ops/norm/norm_ops.h"
#include "src/ops/norm_noise.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

bool is_norm(const OpInfo* op) {
  return std::ranges::find(norm_ops(), op) != norm_ops().end() || op == &kNormNoise ||
         op == &kNormNoiseBackward;
}

// x and dy are what norms call the tensor that they normalize and its gradient. weight_norm has a v
// in its place.
bool is_narrow_input(const OpInfo& op, std::size_t place) {
  const std::string name = input_name(op, int(place));
  return name == "x" || name == "dy";
}

class NormNarrower {
 public:
  explicit NormNarrower(const Graph& source) : rewriter_(source) {}

  Graph run() {
    return rewriter_.run([&](int i) { visit(i); });
  }

 private:
  void visit(int index) {
    const Node& node = rewriter_.source().node(index);
    if (node.kind != NodeKind::kOp) return rewriter_.copy(index);
    std::vector<Value> inputs = rewriter_.inputs_of(node);
    bool reads_narrow = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_narrow = is_norm(node.op) && is_narrow_input(*node.op, i);
      inputs[i] = is_narrow ? narrow(inputs[i]) : wide(inputs[i]);
      reads_narrow = reads_narrow || is_narrow;
    }
    rewriter_.replace(index, *node.op, inputs, node.attrs);
    const Value result = rewriter_({index, 0});
    const bool is_wide = rewriter_.target().type(result).dtype == DType::kF32;
    if (!reads_narrow || !is_wide) return;
    rewriter_.target().narrow_result(result);
    rounded_.insert(result);
  }

  Value narrow(Value v) {
    if (!v.valid() || rewriter_.target().type(v).dtype != DType::kF32) return v;
    return cast(v, DType::kBF16);
  }
  Value wide(Value v) { return rounded_.contains(v) ? cast(v, DType::kF32) : v; }
  // A cast lies outside of the norm's scope, since it is no part of the norm.
  Value cast(Value v, DType type) {
    Value& known = casts_[v];
    if (!known.valid()) known = ops::cast(rewriter_.target(), v, type);
    return known;
  }

  Rewriter rewriter_;
  // Values of the new graph.
  std::map<Value, Value> casts_;
  std::set<Value> rounded_;
};

}  // namespace

Graph narrow_norms(const Graph& graph) { return NormNarrower(graph).run(); }

}  // namespace keel

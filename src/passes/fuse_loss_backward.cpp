// linear_cross_entropy and its backward become one node. The backward computes all logits again;
// together they need one product less.
#include <algorithm>
#include <map>
#include <set>

#include "src/ops/linear_cross_entropy.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

class LossJoiner {
 public:
  LossJoiner(const Graph& source, const ChooseLossSteps& choose)
      : rewriter_(source), choose_(choose), uses_(count_uses(source)), is_copied_(source) {
    const PerNode<bool> live = find_live(source);
    for (int i = 0; i < source.size(); ++i) {
      if (live[i] && source.node(i).op == &kLinearCrossEntropyBackward) find_loss_of(i);
    }
  }

  Graph run() {
    return rewriter_.run([&](int i) {
      if (const auto pair = backward_of_.find(i); pair != backward_of_.end()) {
        return join(i, pair->second);
      }
      if (const auto pair = loss_of_.find(i); pair != loss_of_.end()) {
        const Value step = rewriter_({pair->second, 0});
        return rewriter_.forward(i, step.at(LinearLossStep::kFirstGradient));
      }
      if (!is_copied_[i]) rewriter_.copy(i);
    });
  }

 private:
  const Graph& source() const { return rewriter_.source(); }

  void find_loss_of(int backward) {
    const Node& node = source().node(backward);
    const Value lse = node.inputs[LinearLossInput::kLse],
                dsum = node.inputs[LinearLossInput::kDsum];
    const int loss = lse.node;
    if (!is_forward_of(loss, node) || uses_[lse] != 1) return;
    std::set<int> early;
    if (!find_early(loss, dsum, early) || !choose_(source(), source().node(loss))) return;
    backward_of_[loss] = backward, loss_of_[backward] = loss, early_of_[loss] = early;
  }

  // Whether a node is the loss that the backward belongs to: of the same operands.
  bool is_forward_of(int loss, const Node& backward) const {
    const Node& node = source().node(loss);
    return node.op == &kLinearCrossEntropy && !backward_of_.contains(loss) &&
           std::ranges::equal(node.inputs, std::span(backward.inputs).first(node.inputs.size())) &&
           node.attrs.text() == backward.attrs.text();
  }

  // Lists what a value depends on among the nodes after the loss. False if the loss is one of
  // them, or another loss's gradients, which may not exist by themselves.
  bool find_early(int loss, Value of, std::set<int>& early) const {
    std::vector<Value> left{of};
    while (!left.empty()) {
      const Value v = left.back();
      left.pop_back();
      if (!v.valid() || v.node < loss) continue;
      if (v.node == loss || source().node(v.node).op == &kLinearCrossEntropyBackward) return false;
      if (!early.insert(v.node).second) continue;
      const std::vector<Value>& inputs = source().node(v.node).inputs;
      left.insert(left.end(), inputs.begin(), inputs.end());
    }
    return true;
  }

  void join(int loss, int backward) {
    for (int i : early_of_.at(loss)) {
      if (is_copied_[i]) continue;
      rewriter_.copy(i);
      is_copied_[i] = true;
    }
    const Node& node = source().node(loss);
    std::vector<Value> inputs = rewriter_.inputs_of(node);
    inputs.push_back(rewriter_(source().node(backward).inputs[LinearLossInput::kDsum]));
    rewriter_.replace(loss, kLinearCrossEntropyStep, std::move(inputs), node.attrs);
  }

  Rewriter rewriter_;
  const ChooseLossSteps& choose_;
  PerValue<int> uses_;
  PerNode<bool> is_copied_;  // before a loss, out of its order
  std::map<int, int> backward_of_, loss_of_;
  std::map<int, std::set<int>> early_of_;  // by loss
};

}  // namespace

Graph fuse_loss_backward(const Graph& graph, const ChooseLossSteps& choose) {
  return LossJoiner(graph, choose).run();
}

}  // namespace keel

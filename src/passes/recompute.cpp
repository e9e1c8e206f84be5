// Computes again after the loss what would otherwise be kept from before it.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "src/ops/shard_parts.h"
#include "src/passes/bf16_products.h"
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

// A value that is as cheap to compute as so many nodes without products is computed again wherever
// it is needed, rather than kept: the stream of a residual network from the inputs of its norms.
constexpr int kMostCheap = 12;
constexpr int kDear = 1 << 20;

class Recomputing {
 public:
  Recomputing(const Graph& source, const std::string& loss)
      : source_(source),
        live_(find_live(source)),
        part_(parts_of(source)),
        is_left_(source, false),
        is_saved_(source, false),
        cost_(source, 0),
        map_(source),
        again_(source, -1),
        made_in_(source, -1) {
    const auto found = std::ranges::find(source.outputs(), loss, &NamedValue::name);
    check(found != source.outputs().end(), ErrorKind::kUsage, "no output is called '{}'", loss);
    turn_ = part_[found->value.node];
    find_left();
    choose_saved();
  }

  Graph run() {
    target_.reserve(source_.size());
    for (int i = 0; i < source_.size(); ++i) {
      if (!live_[i]) continue;
      std::vector<Value> inputs;
      for (const Value v : source_.node(i).inputs) inputs.push_back(read(v, part_[i]));
      map_[i] = target_.append(source_.node(i), std::move(inputs));
    }
    for (const NamedValue& output : source_.outputs()) {
      target_.mark_output(output.name, first(output.value));
    }
    for (const Update& update : source_.updates()) {
      target_.mark_update(first(update.leaf), first(update.next));
    }
    return std::move(target_);
  }

 private:
  // Finds the values that a part leaves to a later one before the loss. If that is a view, its base
  // lies in the same memory.
  void find_left() {
    for (int i = source_.size() - 1; i >= 0; --i) {
      const Node& node = source_.node(i);
      if (!live_[i] || part_[i] > turn_) continue;
      for (const Value v : node.inputs) {
        if (v.valid() && part_[v.node] < part_[i]) is_left_[v] = true;
      }
      if (is_view(node) && node.op->view == View::kWhole && is_left_[{i, 0}]) {
        is_left_[node.inputs[0]] = true;
      }
    }
  }

  // A part after the loss computes again what is not saved.
  bool is_inner(Value v) const {
    return source_.node(v).kind == NodeKind::kOp && part_[v.node] < turn_ && !is_saved_[v];
  }

  void choose_saved() {
    for (int i = 0; i < source_.size() && part_[i] < turn_; ++i) {
      const Node& node = source_.node(i);
      if (!live_[i] || node.kind != NodeKind::kOp) continue;
      int cost = factors_of(node).empty() ? int(!is_view(node)) : kDear;
      for (const Value v : node.inputs) {
        if (v.valid() && is_inner(v)) cost = std::min(kDear, cost + cost_[v]);
      }
      for (int port = 0; port < int(node.outputs.size()); ++port) {
        cost_[{i, port}] = cost;
        is_saved_[{i, port}] = is_left_[{i, port}] && cost > kMostCheap;
      }
    }
  }

  Value first(Value v) const { return v.valid() ? map_[v.node].at(v.port) : Value{}; }

  // The value that a node of this part reads in place of `v`.
  Value read(Value v, int part) {
    if (!v.valid() || part <= turn_ || !is_inner(v)) return first(v);
    std::vector<Value> open{v};
    while (!open.empty()) {
      const Value next = unmade_input(open.back().node, part);
      if (next.valid()) {
        open.push_back(next);
        continue;
      }
      if (!is_made(open.back(), part)) append_copy(open.back().node, part);
      open.pop_back();
    }
    return {again_[v.node], v.port};
  }

  // Whether a copy of its node may serve this part. What is large and cheap is not kept from one
  // part to the next.
  bool is_made(Value v, int part) const {
    return again_[v.node] >= 0 &&
           (made_in_[v.node] == part || cost_[v] > kMostCheap || is_small(v));
  }
  bool is_small(Value v) const {
    const Node& node = source_.node(v);
    std::int64_t most = 0;
    for (const TensorType& output : node.outputs) most = std::max(most, output.shape.elements());
    for (const Value input : node.inputs) {
      if (input.valid()) most = std::max(most, source_.shape(input).elements());
    }
    return 16 * source_.shape(v).elements() <= most;
  }

  Value unmade_input(int index, int part) const {
    for (const Value v : source_.node(index).inputs) {
      if (v.valid() && is_inner(v) && !is_made(v, part)) return v;
    }
    return {};
  }

  void append_copy(int index, int part) {
    const Node& node = source_.node(index);
    std::vector<Value> inputs;
    for (const Value v : node.inputs) {
      const bool is_copied = v.valid() && is_inner(v);
      inputs.push_back(is_copied ? Value{again_[v.node], v.port} : first(v));
    }
    Node copy = node;
    copy.name = target_.unique_name(node.name + "/again");
    again_[index] = target_.append(copy, std::move(inputs)).node;
    made_in_[index] = part;
  }

  const Graph& source_;
  Graph target_;
  PerNode<bool> live_;
  PerNode<int> part_;
  PerValue<char> is_left_, is_saved_;
  PerValue<int> cost_;  // in nodes, from what is saved
  PerNode<Value> map_;
  PerNode<int> again_, made_in_;  // the last copy of a node, and the part that has it
  int turn_ = 0;
};

}  // namespace

Graph recompute(const Graph& graph, const std::string& loss) {
  return Recomputing(graph, loss).run();
}

}  // namespace keel

#include "src/passes/in_place.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

constexpr int kNone = -1;  // no buffer

class Assigner {
 public:
  Assigner(const Graph& graph, bool guarded) : graph_(graph), guarded_(guarded), last_use_(graph) {
    result_.of = PerValue<int>(graph, kNone);
    result_.offset = PerValue<std::int64_t>(graph, 0);
    find_last_uses();
  }

  BufferAssignment run() {
    for (int i = 0; i < graph_.size(); ++i) {
      graph_.node(i).kind == NodeKind::kOp ? place_op(i) : place_leaf(i);
    }
    for (const Update& update : graph_.updates()) {
      const bool done = result_.of[update.next] == result_.of[update.leaf];
      if (!done) result_.copies.push_back(update);
    }
    order_copies();
    return std::move(result_);
  }

 private:
  // A view passes its readers on to what it looks at, so uses are collected from the back. Inputs,
  // outputs and values that are copied into a leaf stay to the end of the run.
  void find_last_uses() {
    const int end = graph_.size();
    for (const NamedValue& output : graph_.outputs()) last_use_[output.value] = end;
    for (const Update& update : graph_.updates()) last_use_[update.next] = end;
    for (int i = end - 1; i >= 0; --i) {
      const Node& node = graph_.node(i);
      if (node.kind == NodeKind::kInput) last_use_[{i}] = end;
      for (int port = 0; port < int(node.outputs.size()); ++port) extend({i, port}, i);
      for (Value v : node.inputs) {
        if (v.valid()) extend(v, i);
      }
      for (int port = 0; is_view(node) && port < int(node.outputs.size()); ++port) {
        extend(node.inputs[0], last_use_[{i, port}]);
      }
    }
  }

  void extend(Value v, int reader) { last_use_[v] = std::max(last_use_[v], reader); }

  int new_buffer(Buffer buffer) {
    result_.buffers.push_back(buffer);
    return int(result_.buffers.size()) - 1;
  }

  void place_leaf(int index) {
    const Node& node = graph_.node(index);
    const TensorType& type = node.outputs[0];
    Buffer buffer{.leaf = index, .elements = type.shape.elements(), .dtype = type.dtype};
    buffer.last = last_use_[{index}];
    switch (node.kind) {
      case NodeKind::kConstant:
        buffer.kind = Buffer::kConstant;
        break;
      case NodeKind::kInput:
        buffer.kind = Buffer::kTemporary;
        break;
      default:
        buffer.kind = Buffer::kLeaf;
        break;
    }
    result_.of[{index}] = new_buffer(buffer);
  }

  void place_op(int index) {
    const Node& node = graph_.node(index);
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      const Value output{index, port};
      int buffer = is_view(node) ? looked_at(output) : claimed(output);
      if (buffer == kNone) buffer = fresh(output);
      Buffer& b = result_.buffers[std::size_t(buffer)];
      b.last = std::max(b.last, last_use_[output]);
      result_.of[output] = buffer;
    }
  }

  // A leaf is written once no later copy reads it by a view.
  void order_copies() {
    std::vector<Update> left = std::exchange(result_.copies, {});
    std::vector<int> readers(result_.buffers.size(), 0);
    const auto readers_of = [&](Value v) -> int& { return readers[std::size_t(result_.of[v])]; };
    for (const Update& update : left) ++readers_of(update.next);
    while (!left.empty()) {
      const auto next = std::ranges::find_if(
          left, [&](const Update& update) { return readers_of(update.leaf) == 0; });
      if (next == left.end()) fail_exchange(left.front());
      --readers_of(next->next);
      result_.copies.push_back(*next);
      left.erase(next);
    }
  }

  [[noreturn]] void fail_exchange(const Update& update) const {
    const Buffer& seen = result_.buffers[std::size_t(result_.of[update.next])];
    fail(ErrorKind::kUsage,
         "update of {}: expected a value of its own, got a view of {}, which is updated, too",
         graph_.node(update.leaf).name, graph_.node(seen.leaf).name);
  }

  // The buffer that `output`, of a view, lies in.
  int looked_at(Value output) {
    const Node& node = graph_.node(output);
    const Value whole = node.inputs[0];
    result_.offset[output] = result_.offset[whole] + view_offset(node, output.port);
    return result_.of[whole];
  }

  int fresh(Value output) {
    const TensorType& type = graph_.type(output);
    const std::int64_t elements = type.shape.elements();
    return new_buffer({.kind = elements == 0 ? Buffer::kAbsent : Buffer::kTemporary,
                       .first = output.node,
                       .last = output.node,
                       .elements = elements,
                       .dtype = type.dtype});
  }

  // The buffer of an input that `output` may be written over, or kNone.
  int claimed(Value output) {
    const Node& node = graph_.node(output);
    for (const InPlace& claim : node.op->in_place) {
      if (claim.output != output.port || claim.input >= int(node.inputs.size())) continue;
      const Value v = node.inputs[std::size_t(claim.input)];
      if (!v.valid() || graph_.type(v) != graph_.type(output)) continue;
      const int buffer = result_.of[v];
      if (!may_overwrite(node, output, buffer)) continue;
      ++result_.in_place;
      result_.offset[output] = result_.offset[v];
      return buffer;
    }
    return kNone;
  }

  bool may_overwrite(const Node& node, Value output, int buffer) const {
    const Buffer& b = result_.buffers[std::size_t(buffer)];
    const auto reads = std::ranges::count_if(
        node.inputs, [&](Value v) { return v.valid() && result_.of[v] == buffer; });
    const auto taken = result_.of.of(output.node);
    if (reads != 1 || std::ranges::find(taken, buffer) != taken.end()) return false;
    if (b.last > output.node) return false;
    if (b.kind == Buffer::kTemporary) return true;
    // A leaf is overwritten only by its own next value.
    const bool allowed = node.op->keeps_on_guard || !guarded_;
    return allowed && b.kind == Buffer::kLeaf && graph_.next_of({b.leaf}) == output;
  }

  const Graph& graph_;
  bool guarded_;
  BufferAssignment result_;
  PerValue<int> last_use_;
};

}  // namespace

BufferAssignment assign_buffers(const Graph& graph, bool guarded) {
  return Assigner(graph, guarded).run();
}

}  // namespace keel

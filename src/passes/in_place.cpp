#include "src/passes/in_place.h"

#include <algorithm>

namespace keel {
namespace {

class Assigner {
 public:
  Assigner(const Graph& graph, bool guarded)
      : graph_(graph), guarded_(guarded), result_{}, last_use_(std::size_t(graph.size())) {
    result_.of.resize(std::size_t(graph.size()));
    find_last_uses();
  }

  BufferAssignment run() {
    for (int i = 0; i < graph_.size(); ++i) {
      graph_.node(i).kind == NodeKind::kOp ? place_op(i) : place_leaf(i);
    }
    for (const Update& update : graph_.updates()) {
      const bool done = result_.at(update.next) == result_.at(update.leaf);
      if (!done) result_.copies.push_back(update);
    }
    return std::move(result_);
  }

 private:
  // A view passes its readers on to what it looks at, so uses are collected from the back.
  void find_last_uses() {
    const int end = graph_.size();
    for (int i = 0; i < end; ++i) {
      last_use_[std::size_t(i)].assign(graph_.node(i).outputs.size(), i);
    }
    for (const NamedValue& output : graph_.outputs()) extend(output.value, end);
    for (int i = end - 1; i >= 0; --i) {
      const Node& node = graph_.node(i);
      if (node.kind == NodeKind::kInput) last_use_[std::size_t(i)][0] = end;
      for (Value v : node.inputs) {
        if (v.valid()) extend(v, i);
      }
      if (node.op && node.op->is_view) extend(node.inputs[0], last_use_[std::size_t(i)][0]);
    }
  }

  void extend(Value v, int reader) {
    int& last = last_use_[std::size_t(v.node)][std::size_t(v.port)];
    last = std::max(last, reader);
  }

  int last_use(Value v) const { return last_use_[std::size_t(v.node)][std::size_t(v.port)]; }

  int new_buffer(Buffer buffer) {
    result_.buffers.push_back(buffer);
    return int(result_.buffers.size()) - 1;
  }

  void place_leaf(int index) {
    const Node& node = graph_.node(index);
    const TensorType& type = node.outputs[0];
    Buffer buffer{.leaf = index, .elements = type.shape.elements(), .dtype = type.dtype};
    buffer.last = last_use({index, 0});
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
    result_.of[std::size_t(index)] = {new_buffer(buffer)};
  }

  void place_op(int index) {
    const Node& node = graph_.node(index);
    std::vector<int>& place = result_.of[std::size_t(index)];
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      const Value output{index, port};
      int buffer = -1;
      if (node.op->is_view && port == 0) buffer = result_.at(node.inputs[0]);
      if (buffer < 0) buffer = claimed(output);
      if (buffer < 0) buffer = fresh(output);
      Buffer& b = result_.buffers[std::size_t(buffer)];
      b.last = std::max({b.last, last_use(output), extended_by_update(output)});
      place.push_back(buffer);
    }
  }

  // A value that must be copied into a leaf stays alive to the end of the run.
  int extended_by_update(Value v) const {
    const bool is_next =
        std::ranges::any_of(graph_.updates(), [&](const Update& u) { return u.next == v; });
    return is_next ? graph_.size() : 0;
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

  // The buffer of an input that `output` may be written over, or -1.
  int claimed(Value output) {
    const Node& node = graph_.node(output);
    for (const InPlace& claim : node.op->in_place) {
      if (claim.output != output.port || claim.input >= int(node.inputs.size())) continue;
      const Value v = node.inputs[std::size_t(claim.input)];
      if (!v.valid() || graph_.type(v) != graph_.type(output)) continue;
      const int buffer = result_.at(v);
      if (!may_overwrite(node, output, buffer)) continue;
      ++result_.in_place;
      return buffer;
    }
    return -1;
  }

  bool may_overwrite(const Node& node, Value output, int buffer) const {
    const Buffer& b = result_.buffers[std::size_t(buffer)];
    const bool reads_it_once = std::ranges::count_if(node.inputs, [&](Value v) {
                                 return v.valid() && result_.at(v) == buffer;
                               }) == 1;
    const auto& taken = result_.of[std::size_t(output.node)];
    if (!reads_it_once || std::ranges::find(taken, buffer) != taken.end()) return false;
    if (b.last > output.node) return false;
    if (b.kind == Buffer::kTemporary) return true;
    // A leaf is overwritten only by its own next value.
    const bool allowed = node.op->keeps_on_guard || !guarded_;
    return allowed && b.kind == Buffer::kLeaf &&
           std::ranges::any_of(graph_.updates(), [&](const Update& u) {
             return u.next == output && u.leaf.node == b.leaf;
           });
  }

  const Graph& graph_;
  bool guarded_;
  BufferAssignment result_;
  std::vector<std::vector<int>> last_use_;
};

}  // namespace

BufferAssignment assign_buffers(const Graph& graph, bool guarded) {
  return Assigner(graph, guarded).run();
}

}  // namespace keel

// Rewriting a graph into a new one, node by node, in order.
#pragma once

#include <vector>

#include "src/graph/tables.h"

namespace keel {

// The nodes that an output or an update depends on, and the leaves that persist or are fed.
PerNode<bool> find_live(const Graph& graph);

// The number of times that live nodes, outputs and updates read each value.
PerValue<int> count_uses(const Graph& graph);

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : source_(source), map_(source) {
    target_.reserve(source.size());
  }

  const Graph& source() const { return source_; }
  Graph& target() { return target_; }

  // The value in the new graph that stands for an old one; absent stays absent.
  Value operator()(Value old) const;
  std::vector<Value> inputs_of(const Node& node) const;
  // Copies a node as it is.
  void copy(int index);
  // Adds another op under the old node's name, whose outputs replace the old node's.
  void replace(int index, const OpInfo& op, std::vector<Value> new_inputs, Attrs attrs);
  // Replaces output 0 of the old node by a value that exists already.
  void forward(int index, Value existing);
  // Calls `visit` for every live node, in order. It copies, replaces or forwards the node, or skips
  // it if nothing will ask for it. Then copies outputs and updates, and returns the new graph.
  template <class Visit>
  Graph run(Visit visit) {
    const PerNode<bool> live = find_live(source_);
    for (int i = 0; i < source_.size(); ++i) {
      if (live[i]) visit(i);
    }
    return finish();
  }

 private:
  Value computed(Value next);
  Graph finish();

  const Graph& source_;
  Graph target_;
  PerNode<Value> map_;  // for an old node: the new value of its output 0
};

}  // namespace keel

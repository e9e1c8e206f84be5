// Rewriting a graph into a new one, node by node, in order.
#pragma once

#include <vector>

#include "src/graph/tables.h"

namespace keel {

// The nodes that an output or an update depends on, and the leaves that persist or are fed.
PerNode<bool> find_live(const Graph& graph);

// How often each value is read, by live nodes, outputs and updates.
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
  // Adds another op under the old node's name, standing for its outputs.
  void replace(int index, const OpInfo& op, std::vector<Value> new_inputs, Attrs attrs);
  // Lets output 0 of the old node be a value that exists already.
  void forward(int index, Value existing);
  // Calls `visit` for every live node, in order, which copies, replaces or forwards it or knows
  // that nobody will ask for it. Then copies outputs and updates, and gives the new graph away.
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
  PerNode<Value> map_;  // of an old node: the new value of its output 0
};

}  // namespace keel

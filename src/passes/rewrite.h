// Rewriting a graph into a new one, node by node, in order.
#pragma once

#include <vector>

#include "src/graph/graph.h"

namespace keel {

// How often each node output is read, by nodes, outputs and updates.
class UseCounts {
 public:
  explicit UseCounts(const Graph& graph);
  int of(Value v) const { return counts_[std::size_t(v.node)][std::size_t(v.port)]; }

 private:
  std::vector<std::vector<int>> counts_;
};

class Rewriter {
 public:
  explicit Rewriter(const Graph& source) : source_(source), map_(std::size_t(source.size())) {}

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
  // Copies outputs and updates, and gives the new graph away.
  Graph finish();

 private:
  Value computed(Value next);

  const Graph& source_;
  Graph target_;
  std::vector<Value> map_;  // per old node: the new value of its output 0
};

}  // namespace keel

// The values of one backend's chain through a step, each kept until its last reader.
#pragma once

#include "frontend/compare/subject.h"
#include "src/graph/tables.h"

namespace keel::compare {

// Which node is the last to read each node's outputs. `needed` are the nodes that run.
PerNode<int> last_readers(const Graph& graph, const PerNode<bool>& needed);

class Lane {
 public:
  // Values are kept in the backend's storage types or, `declared`, rounded to the declared ones.
  Lane(const Backend& backend, bool declared) : backend_(backend), declared_(declared) {}

  // Begins a step: leaves take what the last step left or, at first, what the subject gives them.
  void begin(const Graph& graph, const SubjectStep& step, const Subject& subject);
  // The inputs of a node, null for an absent one.
  std::vector<const Tensor*> inputs(const Node& node) const;
  const Tensor& value(Value v) const;
  void set(int node, std::vector<Tensor> outputs);
  std::span<const Tensor> outputs(int node) const { return values_[std::size_t(node)]; }
  // Forgets the outputs of nodes whose last reader this was.
  void release(int node, const PerNode<int>& last);
  // What a leaf has before the step, and what it takes after it.
  const Tensor& leaf(const std::string& name) const { return leaves_.at(name); }
  void set_next(const std::string& name, Tensor value) { next_[name] = std::move(value); }
  void end();
  const Feeds& leaves() const { return leaves_; }
  // Of all leaves, in place of what the last step left.
  void set_leaves(Feeds leaves) { leaves_ = std::move(leaves); }

 private:
  Tensor kept(const Tensor& value, DType declared) const;

  const Backend& backend_;
  bool declared_;
  const Graph* graph_ = nullptr;
  Feeds leaves_, next_;
  std::vector<std::vector<Tensor>> values_;  // of inputs, constants and ops, by node
};

}  // namespace keel::compare

// The values of one backend's chain through a step, each kept until its last reader.
#pragma once

#include "frontend/compare/walk/subject.h"
#include "src/graph/tables.h"

namespace keel::compare {

// The last node that reads each node's outputs. `needed` marks the nodes that run.
PerNode<int> last_readers(const Graph& graph, const PerNode<bool>& needed);

class BackendTrace {
 public:
  // Values are kept in the backend's storage types or, if `declared`, rounded to the declared ones.
  BackendTrace(const Backend& backend, bool declared) : backend_(backend), declared_(declared) {}

  // Begins a step: leaves take their values from the last step or, at first, from the subject.
  void begin(const Graph& graph, const SubjectStep& step, const Subject& subject);
  // The inputs of a node, null for an absent one.
  std::vector<const Tensor*> inputs(const Node& node) const;
  const Tensor& value(Value v) const;
  void set(int node, std::vector<Tensor> outputs);
  std::span<const Tensor> outputs(int node) const { return values_[std::size_t(node)]; }
  // Forgets the outputs of nodes whose last reader was `node`.
  void release(int node, const PerNode<int>& last);
  // The value of a leaf before the step; set_next() sets its value after the step.
  const Tensor& leaf(const std::string& name) const { return leaves_.at(name); }
  void set_next(const std::string& name, Tensor value) { next_[name] = std::move(value); }
  void end();
  const Feeds& leaves() const { return leaves_; }
  // Replaces the values of all leaves from the last step.
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

// Runs a graph exactly as it is written: every value has memory of its own, with no passes and no
// plan. A compiled program must give the same results.
#pragma once

#include "src/runtime/run_graph.h"

namespace keel {

class Interpreter {
 public:
  // Sets leaves to their initial values, which `seed` keys as in Variables.
  Interpreter(Backend& backend, const Graph& graph, std::uint64_t seed);

  void feed(const std::string& name, const Tensor& value);
  // Runs every node in order, then gives every updated leaf its next value.
  void run();
  // Outputs of the last run, and a leaf's value, in the storage type.
  const Tensor& output(const std::string& name) const;
  const Tensor& leaf(const std::string& name) const;

 private:
  void run_node(int index);
  Tensor& value(Value v) { return values_[std::size_t(v.node)][std::size_t(v.port)]; }
  TensorRef ref(Value v);

  Backend& backend_;
  const Graph& graph_;
  std::vector<std::vector<Tensor>> values_;  // [node][port]
  Results outputs_;
};

}  // namespace keel

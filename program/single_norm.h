// The graph that `keel norm` runs: one normalization layer, and its gradients when dy is given.
#pragma once

#include <string>
#include <vector>

#include "frontend/nn/norm.h"

namespace keel::cli {

// The inputs of a step.
struct NormStep {
  TensorType x;
  bool backward = false, masked = false;
  friend bool operator==(const NormStep&, const NormStep&) = default;
};

// Inputs: "step" () i32, "x", "dy" and "mask" as the step says. Outputs: "y" and, with dy, "dx" and
// "d<parameter>".
struct SingleNorm {
  Graph graph;
  std::vector<Value> parameters, states;

  SingleNorm(const nn::Norm& norm, nn::Mode mode, std::uint64_t seed, const NormStep& step);

  const std::string& leaf(Value v) const { return graph.node(v).name; }
  // The name of the leaf among the caller's arrays.
  std::string array_name(Value v) const;
  // Parameters, then states.
  std::vector<Value> leaves() const;

 private:
  std::string short_name(Value v) const;
  void add_gradients(const nn::Net& net, Value x, Value y);
};

// Whether the norm's options fit a sequence of a width that most numbers of groups divide.
bool takes_some_x(const nn::Norm& norm, nn::Mode mode);

}  // namespace keel::cli

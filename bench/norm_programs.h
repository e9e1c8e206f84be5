// A norm in training as programs: the forward, the backward, and the two in sequence.
#pragma once

#include "bench/torch_peer.h"
#include "src/runtime/program.h"

namespace keel::bench {

// x -> y and, for a given dy, the gradients of x and of the parameters, as outputs "y" and
// "gradient of x", "gradient of norm/gain", .... Throws Error{kUsage} where the norm refuses x.
Graph norm_graph(const nn::Norm& norm, const Shape& x);

// Whether a node of that graph computes y, or a gradient.
bool is_norm_forward(const Node& node);
bool is_norm_backward(const Node& node);

// Each program reads the values that it has in the whole one: the statistics saved for the backward
// are real ones.
struct NormPrograms {
  Graph forward_graph, backward_graph, both_graph;
  Variables variables;
  Program forward, backward, both;
  std::vector<TorchCase::Expected> results;  // of the third step, from the whole

  // Makes the programs of norm_graph(...) for these x and dy.
  NormPrograms(Backend& backend, const Graph& graph, const Tensor& x, const Tensor& dy);

  // The same steps for PyTorch.
  TorchCase torch_case(const nn::Norm& norm, const Tensor& x, const Tensor& dy) const;
};

}  // namespace keel::bench

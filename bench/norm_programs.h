// A norm in training as programs of its own: the forward, the backward, and both in a row.
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

// Each program is fed with what it meets in the whole: statistics saved for the backward are real
// ones.
struct NormPrograms {
  Graph forward_graph, backward_graph, both_graph;
  Variables variables;
  Program forward, backward, both;
  std::vector<TorchCase::Expected> results;  // of the third step, from the whole

  // Of norm_graph(...) for these x and dy.
  NormPrograms(Backend& backend, const Graph& graph, const Tensor& x, const Tensor& dy);

  // The same steps for PyTorch.
  TorchCase torch_case(const nn::Norm& norm, const Tensor& x, const Tensor& dy) const;
};

}  // namespace keel::bench

// A norm in training as programs: the forward, the backward, and the two in sequence.
#pragma once

#include "bench/library_peer.h"
#include "src/runtime/run_graph.h"

namespace keel::bench {

// x -> y and, for a given dy, the gradients of x and of the parameters, as outputs "y" and
// "gradient of x", "gradient of norm/gain", .... With a residual the norm reads the sum of x and
// the input "residual", as in a pre-norm Transformer; it is the output "sum", whose gradient is the
// input "dsum". Throws Error{kUsage} where the norm refuses x.
Graph norm_graph(const nn::Norm& norm, const Shape& x, bool has_residual = false);

// Whether a node of that graph computes y, or a gradient.
bool is_norm_forward(const Node& node);
bool is_norm_backward(const Node& node);

// Each program reads the values that it has in the whole one: the statistics saved for the backward
// are real ones.
struct NormPrograms {
  Graph forward_graph, backward_graph, both_graph;
  Variables variables;
  Program forward, backward, both;
  std::vector<PeerCase::Expected> results;  // of the third step, from the whole

  // Makes the programs of norm_graph(...) for these inputs.
  NormPrograms(Backend& backend, const Graph& graph, const Feeds& feeds);

  // The same steps for PyTorch.
  PeerCase peer_case(const nn::Norm& norm, const Feeds& feeds) const;
};

}  // namespace keel::bench

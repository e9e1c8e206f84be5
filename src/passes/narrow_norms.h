// Norms of bf16.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Gives every norm of x, and every norm's noise, forward and backward, x and dy in bf16, and has y
// and dx rounded to bf16 by the kernel that computes them (Graph::narrow_result). Other ops read
// these cast back. Gains, biases, statistics and states stay float32. weight_norm, whose operand is
// a weight, is left as it is, and so are sums of statistics of several parts (merge_moments,
// merge_sums).
//
// A value is cast once, however many norms read it. An output of the graph that is y or dx of a
// norm is bf16 afterwards. The pass runs on a graph that has its gradients. Training steps do not
// use it, since their residual sums and what norms read stay float32; measurements and comparisons
// do.
Graph narrow_norms(const Graph& graph);

}  // namespace keel

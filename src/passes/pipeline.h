// The passes that run between building a graph and planning its memory.
#pragma once

#include <functional>

#include "src/graph/graph.h"
#include "src/ops/matmul.h"

namespace keel {

// Drops ops and constants that no output and no update depends on. Leaves that persist or are fed
// stay, so that a graph's interface does not change.
Graph remove_dead_code(const Graph& graph);

// Evaluates element-wise ops on constants, merges scales, and drops ops that change nothing
// (scale by 1, reshape of a reshape, a broadcast that element-wise readers do by themselves).
Graph fold_constants(const Graph& graph);

// Makes one product of a sum of at least four, a_1^T d_1 + a_2^T d_2 + ..., where that moves fewer
// bytes: the gradient of a weight that is used at many time steps, with few rows at each.
Graph merge_products(const Graph& graph);

// Adds a row bias and a ReLU into the matrix product or convolution before it, then joins chains
// of element-wise ops into one node.
Graph fuse(const Graph& graph);

// Stores the images that convolutions and pooling read and write as (n, h, w, c), for backends that
// prefer it; transposes remain only where other ops meet them. Runs after all other passes.
Graph to_channels_last(const Graph& graph);

// The panels that the second factor of a product is best stored in; width 0: in none. It is asked
// once for all products of the same sizes, attributes and kind of bias.
using ChoosePanels = std::function<PanelForm(const Graph&, const Node& product)>;

// Stores a matrix that many products share as their second factor in the panels that `choose`
// names, once, and lets them read those: the weight of a recurrent layer, which meets few rows at
// every time step. Runs after fuse, for backends that prefer it.
Graph to_panels(const Graph& graph, const ChoosePanels& choose);

struct PassOptions {
  bool channels_last = false;  // has to_channels_last after the default passes
  ChoosePanels panels = {};    // has to_panels, too, if given
  bool verify_each = true;     // off: verifies before the first pass and after the last one only
};
// Runs all passes. Throws Error{kInternal} when the graph, or what a pass makes of it, breaks a
// rule of verify().
Graph run_passes(const Graph& graph, const PassOptions& options = {});

}  // namespace keel

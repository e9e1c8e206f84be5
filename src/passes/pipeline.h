// The passes that run between building a graph and planning its memory.
#pragma once

#include <functional>

#include "src/graph/graph.h"
#include "src/ops/matmul.h"

namespace keel {

// Removes ops and constants that no output and no update depends on. Leaves that persist or are fed
// stay, so that the graph's interface does not change.
Graph remove_dead_code(const Graph& graph);

// Evaluates element-wise ops on constants, merges scales, and removes ops that change nothing
// (scale by 1, reshape of a reshape, a broadcast that element-wise readers do themselves).
Graph fold_constants(const Graph& graph);

// Merges a sum of at least four products, a_1^T d_1 + a_2^T d_2 + ..., into one product if that
// moves fewer bytes: the gradient of a weight used at many time steps, with few rows at each.
Graph merge_matmuls(const Graph& graph);

// Fuses a row bias and a ReLU into the matrix product or convolution before them, then joins chains
// of element-wise ops into one node.
Graph fuse(const Graph& graph);

// Stores the images that convolutions and pooling read and write as (n, h, w, c), for backends that
// prefer it; transposes remain only where other ops meet them. Runs after pack_weights.
Graph to_channels_last(const Graph& graph);

// The panels that best store the second factor of a product; width 0: no panels. It is called once
// for all products with the same sizes, attributes and kind of bias.
using ChoosePacking = std::function<PackedLayout(const Graph&, const Node& product)>;

// Stores a matrix that is the second factor of many products once in the panels that `choose`
// names, and lets these products read the panels: the weight of a recurrent layer, which meets few
// rows at every time step. Runs after fuse, for backends that prefer it.
Graph pack_weights(const Graph& graph, const ChoosePacking& choose);

// Whether a linear_cross_entropy shall be computed together with its backward.
using ChooseLossSteps = std::function<bool(const Graph&, const Node& loss)>;

// Joins a linear_cross_entropy with its backward into one linear_cross_entropy_step where `choose`
// says so and the gradient of the loss does not depend on the loss, as that of a mean over a known
// number of words: what that gradient is computed from then moves to before the loss.
Graph fuse_loss_backward(const Graph& graph, const ChooseLossSteps& choose);

// Whether the kernel of a node can round output 0 to bf16 and, if it is element-wise, read bf16
// operands of a float32 result.
using ChooseNarrow = std::function<bool(const Graph&, const Node&)>;

// Saves the casts to and from bf16 that kernels can do by themselves, as far as `choose` says so,
// and with each a pass over memory: where the only reader of a float32 result casts it to bf16, the
// node that computes it rounds it (Graph::narrow_result), and an element-wise op beside float32
// operands reads the bf16 that was cast for it. The bits stay the same. Runs after all others.
Graph fuse_casts(const Graph& graph, const ChooseNarrow& choose);

// For a graph that runs in parts (src/ops/shard_parts.h): after the part with the output `loss`,
// nothing reads what an earlier part computed for itself; it is computed again, by the same nodes
// from what that part read. What one part leaves to another before the loss is kept for that,
// unless it can be computed without products from what is kept. The bits stay the same. Runs after
// all others, because it copies nodes as they are.
Graph recompute(const Graph& graph, const std::string& loss);

struct PassOptions {
  bool channels_last = false;       // run to_channels_last after the default passes
  ChoosePacking panels = {};        // if given, run pack_weights as well
  ChooseLossSteps loss_steps = {};  // if given, run fuse_loss_backward as well
  ChooseNarrow narrow = {};         // if given, run fuse_casts as well
  bool verify_each = true;          // false: verify only before the first pass and after the last
};
// Runs all passes. Throws Error{kInternal} if the graph, or the result of a pass,
// breaks a rule of verify().
Graph run_passes(const Graph& graph, const PassOptions& options = {});

}  // namespace keel

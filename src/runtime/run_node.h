// One node of a graph alone: values in, values out.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "src/runtime/backend.h"

namespace keel {

// The outputs of a node, or the reason why the backend refuses to run it.
struct NodeRun {
  std::vector<Tensor> outputs;  // in the backend's storage types
  std::string refusal = {};
};

// Runs op node `index` on memory of its own. `inputs` has one tensor for each input of the node,
// null for an absent one. Each has the declared shape and any element type that converts to its
// storage type. Outputs that the kernel does not write are 0. Views are copied.
NodeRun run_node(Backend& backend, const Graph& graph, int index,
                 std::span<const Tensor* const> inputs);

// The same for a node that need not be of the graph itself; its inputs are.
NodeRun run_node(Backend& backend, const NodeContext& context,
                 std::span<const Tensor* const> inputs);

}  // namespace keel

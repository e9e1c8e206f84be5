// Reverse-mode differentiation: appends the explicit backward nodes of a scalar to the graph.
#pragma once

#include <span>
#include <vector>

#include "src/graph/graph.h"

namespace keel {

// Gradients of the scalar `loss` with respect to each of `wrt`, of their types. A value that the
// loss does not depend on gets a constant zero. Gradients of a value used twice are added up.
// Backward nodes are named after their forward node: "fc1/matmul.backward/matmul".
// Throws Error{kUsage} when the loss is not a scalar, or an op on the way has no backward.
std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt);

}  // namespace keel

// Reverse-mode differentiation: appends the explicit backward nodes of a scalar to the graph.
#pragma once

#include <span>
#include <vector>

#include "src/graph/graph.h"

namespace keel {

// The gradient of a value that the loss does not depend on.
enum class Unreached { kAbsent, kZero };

struct Gradients {
  std::vector<Value> of;       // of each wrt, of its type
  std::vector<Update> states;  // what the backward makes of states that forward nodes read
};

// Differentiates the scalar `loss` by each of `wrt`. Gradients of a value used twice are added up.
// Backward nodes are named after their forward node: "fc1/matmul.backward/matmul".
// No update is marked: Gradients::states says what a training step is to mark, such as the nu of
// PowerNorm. A state that several nodes read is carried on through their backwards, from the last
// node to the first, and is there once, with its last value.
// Throws Error{kUsage} when the loss is not a scalar, or an op on the way has no backward.
Gradients differentiate(Graph& graph, Value loss, std::span<const Value> wrt,
                        Unreached unreached = Unreached::kAbsent);

// The gradients alone, zero where the loss does not depend on a value.
std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt);

}  // namespace keel

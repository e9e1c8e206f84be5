// Reverse-mode differentiation: appends the explicit backward nodes of a scalar to the graph.
#pragma once

#include <span>
#include <vector>

#include "src/ops/row_gradient.h"

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

// Which tables have gradients as rows: parameters (V, width) that lookups (src/ops/embedding.h)
// alone read, whatever their padding, and the loss depends on, with V >= least_rows_per_id * n, n
// being the ids of all these lookups together. A table that anything else reads, such as tied
// logits, has a whole gradient.
struct RowChoice {
  // Below it, sorting the ids and writing rows down costs what it saves.
  double least_rows_per_id = 2;
};

struct ParameterGradients {
  std::vector<ParameterGradient> of;  // of each wrt; absent where the loss does not depend on it
  std::vector<Update> states;         // as of Gradients
};

// The same with rows, as `choice` says; written out they are the whole gradient to the bit. Each
// lookup has rows of its own, "embed/embedding.backward/sum_groups"; those of several lookups are
// joined, "table.backward/...", and added up in the order in which whole gradients would be.
ParameterGradients differentiate_by_rows(Graph& graph, Value loss, std::span<const Value> wrt,
                                         const RowChoice& choice = {});

// The gradients alone, zero where the loss does not depend on a value.
std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt);

}  // namespace keel

// Reverse-mode differentiation: appends the explicit backward nodes of a scalar to the graph.
#pragma once

#include <span>
#include <vector>

#include "src/ops/row_gradient.h"

namespace keel {

// The gradient that is returned for a value that the loss does not depend on.
enum class Unreached { kAbsent, kZero };

struct Gradients {
  std::vector<Value> of;       // of each wrt, of its type
  std::vector<Update> states;  // next values that the backward gives to states of forward nodes
};

// Differentiates the scalar `loss` by each of `wrt`. Gradients of a value used twice are added up.
// Backward nodes are named after their forward node: "fc1/matmul.backward/matmul".
// No update is marked: Gradients::states lists the updates that a training step must mark, such as
// the nu of PowerNorm. If several nodes read a state, their backwards pass it on from the last node
// to the first; the list has it once, with its final value.
// Throws Error{kUsage} when the loss is not a scalar, or an op on the way has no backward.
Gradients differentiate(Graph& graph, Value loss, std::span<const Value> wrt,
                        Unreached unreached = Unreached::kAbsent);

// Which tables have gradients as rows: parameters (V, width) that the loss depends on and that only
// lookups (src/ops/embedding.h) read, with any padding, if V >= least_rows_per_id * n, where n is
// the number of ids of all these lookups together. A table with any other reader, such as tied
// logits, has a whole gradient.
struct RowChoice {
  // Below this ratio, sorting the ids and writing rows costs as much as it saves.
  double least_rows_per_id = 2;
};

struct ParameterGradients {
  std::vector<ParameterGradient> of;  // of each wrt; absent where the loss does not depend on it
  std::vector<Update> states;         // as in Gradients
};

// The same with rows, as `choice` says; written out they equal the whole gradient to the bit. Each
// lookup has rows of its own, "embed/embedding.backward/sum_groups". Rows of several lookups are
// joined, "table.backward/...", and added in the order in which whole gradients would be.
ParameterGradients differentiate_by_rows(Graph& graph, Value loss, std::span<const Value> wrt,
                                         const RowChoice& choice = {});

// Only the gradients; zero for a value that the loss does not depend on.
std::vector<Value> gradient(Graph& graph, Value loss, std::span<const Value> wrt);

}  // namespace keel

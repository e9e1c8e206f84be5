// Kernels that follow each other and are run together, a few rows at a time, so that what one
// writes is still in a cache when the next reads it: residual sums and dropout before a norm, sums
// of gradients and casts after its backward. Every value keeps its bits and its address.
#pragma once

#include <span>
#include <vector>

#include "src/runtime/backend.h"

namespace keel {

// The nodes first to last. One of them, `norm`, goes through its rows (Prepared::bind_rows); the
// others that run a kernel work element by element (Prepared::bind_elements).
struct JoinedRows {
  int first, norm, last;
};

// Finds the kernels to join: neighbours in the order of kernels that hand each other values of the
// size of the norm's x, each element of which needs no more than the same row. `prepared` has an
// entry for each node, without a kernel where none runs.
std::vector<JoinedRows> find_joined_rows(const Graph& graph, std::span<const Prepared> prepared);

// Makes the kernel of the nodes of `joined`; bindings[i] is that of node joined.first + i.
Kernel join_rows(const JoinedRows& joined, std::span<const Prepared> prepared,
                 std::span<Binding> bindings);

}  // namespace keel

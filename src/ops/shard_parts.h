// Where the shards of a batch meet. Every shard is an instance of one graph, and the instances run
// in step: at a collective each gives a value, and takes the values of all. In the graph these are
// an output and an input of one name, so no op and no kernel knows of it; the caller that runs the
// instances (Program::run_part) copies the one to the other.
#pragma once

#include <string_view>

#include "src/graph/tables.h"

namespace keel {

// Outputs and inputs of this prefix belong to collectives, numbered in the order of the graph.
inline constexpr std::string_view kCollective = "collective/";

// The value that a shard gives where it takes `all`; absent where `all` is no such input.
Value given_for(const Graph& graph, Value all);

// The part of a run that each node belongs to: the number of collectives that are given before it.
PerNode<int> parts_of(const Graph& graph);

namespace ops {

// Gives `part` and returns the values of all shards, (shards, shape of part...), in their order. A
// shard without a row gives zeros.
Value all_shards(Graph& g, Value part, std::int64_t shards);

}  // namespace ops
}  // namespace keel

// A part of a graph as a graph of its own, to measure it alone.
#pragma once

#include <functional>

#include "src/graph/graph.h"

namespace keel::bench {

// The nodes that `selects` picks. Parameters and states stay, with their updates; every other
// value that a picked node reads becomes an input, and every result without an update an output.
Graph part_of(const Graph& graph, const std::function<bool(const Node&)>& selects);

}  // namespace keel::bench

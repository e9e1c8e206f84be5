// A part of a graph as a graph of its own, to measure it alone.
#pragma once

#include <functional>

#include "src/graph/graph.h"

namespace keel::bench {

// The nodes that `selects` picks. Parameters and states stay, with their updates; a result of
// another node that a picked one reads becomes the input "node:port", and output 0 of every picked
// node an output under its name.
Graph part_of(const Graph& graph, const std::function<bool(const Node&)>& selects);

}  // namespace keel::bench

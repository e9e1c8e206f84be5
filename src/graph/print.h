// A graph as text, a node a line.
#pragma once

#include <string>

#include "src/graph/graph.h"

namespace keel {

// "%4 fc1/matmul = matmul(%1, %2) {transpose_a=false ...} : f32(128, 1000)"
std::string print_node(const Graph& graph, int index);
// All nodes, then outputs and updates.
std::string print(const Graph& graph);

}  // namespace keel

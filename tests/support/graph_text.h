// A graph in words, to compare what two recipes build.
#pragma once

#include <string>

#include "src/graph/graph.h"

namespace keel::test {

// One line a node: name, op, attributes, inputs, types, the facts of a leaf and its first values,
// which are sampled with one seed. Two graphs have the same text when they compute the same.
std::string graph_text(const Graph& graph);

}  // namespace keel::test

// The grammar of a graph, checked after every pass.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Throws Error{kInternal} naming the node unless: names are unique; inputs come from earlier nodes
// and existing ports; recorded types equal the inferred ones; updates join equal types and come
// from ops; outputs exist. `after` names the pass that made the graph.
void verify(const Graph& graph, std::string_view after);

}  // namespace keel

// How many nodes of an op a graph has.
#pragma once

#include "src/graph/graph.h"

namespace keel::test {

inline int count(const Graph& g, const OpInfo& op) {
  int n = 0;
  for (int i = 0; i < g.size(); ++i) n += g.node(i).op == &op;
  return n;
}

}  // namespace keel::test

// Random training graphs for the passes and the planner: element-wise chains, broadcasts,
// reductions, layout changes, products with bias and relu, constants, gradients and updates.
#pragma once

#include "tests/support/graph_runner.h"

namespace keel::test {

struct RandomGraph {
  Graph graph;
  Feeds feeds;
};

// A graph of about `ops` ops, the same for the same seed. All floating values are f64, and every
// result stays of moderate size. Outputs: "loss", "d0", ... per leaf, and a few others.
RandomGraph random_graph(std::uint64_t seed, int ops = 20);

}  // namespace keel::test

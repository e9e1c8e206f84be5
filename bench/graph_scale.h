// keel bench graph: how the time to build a runnable program grows with the graph.
#pragma once

#include "src/graph/graph.h"

namespace keel::bench {

// Medians over rounds, in seconds of processor time, for one training graph.
struct GraphScale {
  int nodes = 0;        // of the graph as it is built: forward, backward and optimizer
  int kernels = 0;      // of the program
  double build = 0;     // the forward is built
  double gradient = 0;  // backward and optimizer are appended
  double passes = 0;    // run_passes, verified before the first and after the last
  double plan = 0;      // plan_memory
  double bind = 0;      // the rest of Program's construction, on the null backend

  double total() const { return build + gradient + passes + plan + bind; }
};

// The training graph of a stack of LSTM layers, unrolled over `steps` time steps, with a loss at
// every step, and Adam for its parameters.
Graph recurrent_step(int steps);

// Builds and compiles the recurrent graph whose number of nodes comes nearest to `nodes`.
GraphScale bench_graph(int nodes, int rounds);

}  // namespace keel::bench

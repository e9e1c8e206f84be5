// One op on any backend: a small graph that runs it forward and backward.
#pragma once

#include <functional>
#include <vector>

#include "src/runtime/run_graph.h"

namespace keel::compare {

// Builds the output values of interest from the op's inputs, in the given graph.
using Build = std::function<std::vector<Value>(Graph&, const std::vector<Value>&)>;

// One op. It is run forward on `inputs`, where floating ones are converted to `dtype`, and backward
// from the scalar sum over outputs j of <output j, weights j>, where the weights are fixed random
// numbers. Results: "y0", "y1", ... and "d0", "d1", ... per floating input. Only floating outputs
// take part in the scalar. `gradients` off leaves the backward out.
struct OpCase {
  std::vector<Tensor> inputs;
  Build build;
  bool gradients = true;
  bool optimize = false;
};
Results run_case(Backend& backend, const OpCase& op_case, DType dtype);
// The graph that run_case runs, and what it feeds.
struct CaseGraph {
  Graph graph;
  Feeds feeds;
};
CaseGraph graph_of(const OpCase& op_case, DType dtype);

// A tensor of normal random numbers (mean, deviation), in f64, keyed by `stream`.
Tensor random_normal(const Shape& shape, std::uint32_t stream, double mean = 0,
                     double deviation = 1);

}  // namespace keel::compare

// The graph of one norm alone, as benchmarks measure it.
#pragma once

#include <string>

#include "src/graph/graph.h"

namespace keel::bench {

// A norm (as nn::Norm::parse takes it) in training, after the passes. Inputs "x" and "dy" of that
// shape; outputs "y", and "gradient of NAME" of x and of every parameter for the gradient dy of y.
Graph norm_graph(const std::string& name, const Shape& shape);

// Whether a node of that graph computes y, or a gradient.
bool is_norm_forward(const Node& node);
bool is_norm_backward(const Node& node);

}  // namespace keel::bench

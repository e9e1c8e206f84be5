// The reference's result for one node, and the comparison of other results with it.
#pragma once

#include "frontend/compare/bounds/measure.h"
#include "frontend/compare/bounds/node_bounds.h"
#include "src/runtime/run_node.h"

namespace keel::compare {

// The outputs in float64, and the errors that rounding may add; a view has no bounds.
struct NodeResult {
  std::vector<Tensor> outputs;
  NodeBounds bounds;
};

// Options of a reference result: whether it needs bounds, for which kernels, with which input
// errors.
struct ReferenceOptions {
  bool wants_bounds = true;
  Kernels kernels = Kernels::kKeel;
  std::span<const Tensor* const> input_errors = {};  // ComparedNode::input_errors
};
NodeResult reference_node(Backend& reference, const Graph& graph, int index,
                          std::span<const Tensor* const> inputs, const ReferenceOptions& options);

// The value of a leaf after `leaf <- next`, copied by the backend itself.
Tensor committed(Backend& backend, const Tensor& leaf, const Tensor& next);

// The errors of all outputs; without bounds none is compared.
Errors measured(std::span<const Tensor> got, std::span<const Tensor> expected,
                const NodeBounds& bounds);

}  // namespace keel::compare

// What the judge says of one node, and how a result is held to it.
#pragma once

#include "frontend/compare/measure.h"
#include "frontend/compare/node_bounds.h"
#include "src/runtime/run_node.h"

namespace keel::compare {

// The outputs in float64, and what rounding may add to them; no bounds of a view.
struct Judgement {
  std::vector<Tensor> outputs;
  NodeBounds bounds;
};

// Whom a judgement is for.
struct JudgeOptions {
  bool wants_bounds = true;
  Kernels kernels = Kernels::kKeel;
  std::span<const Tensor* const> input_errors = {};  // JudgedNode::input_errors
};
Judgement judge_node(Backend& judge, const Graph& graph, int index,
                     std::span<const Tensor* const> inputs, const JudgeOptions& options);

// What a leaf holds after `leaf <- next`, by the backend's own copy.
Tensor committed(Backend& backend, const Tensor& leaf, const Tensor& next);

// The errors of all outputs; without bounds none is judged.
Errors measured(std::span<const Tensor> got, std::span<const Tensor> expected,
                const NodeBounds& bounds);

}  // namespace keel::compare

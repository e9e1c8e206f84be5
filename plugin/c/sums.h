// Ops of the C interface that the engine has as two nodes: a residual sum and the norm of it, and
// their backward.
//     add_layer_norm, add_rms_norm  (x, residual, gain, bias):   s = x + residual,  y = norm(s)
//       outputs: y and the statistics of the norm;  sum, which is s
//     add_layer_norm_backward, add_rms_norm_backward  (sum, gain, statistics, dy, dsum):
//       dx = norm'(dy) + dsum, the gradient of x and of residual;  dsum may be absent
//       outputs: those of the norm's backward
// x and residual, and in the backward sum, dy and dsum, have one type and one shape; the attributes
// are those of the norm. In bf16 s is rounded and then normalized as it is stored, and dx is
// rounded before the sum with dsum and after it: the results are those of the two ops one after the
// other.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "src/graph/graph.h"

namespace keel::plugin {

struct SumOp {
  OpInfo info;         // names inputs, outputs and attributes, and has no rules
  const OpInfo& norm;  // the norm, or its backward
};

std::span<const SumOp> sum_ops();
// The op of that name, or null.
const SumOp* find_sum_op(std::string_view name);

// Appends the nodes of an op whose inputs are given by place, absent ones as invalid values, and
// returns its outputs by place. Throws Error{kUsage} for types that do not fit.
std::vector<Value> add_sum_op(Graph& graph, const SumOp& op, std::span<const Value> inputs,
                              const Attrs& attrs);

}  // namespace keel::plugin

// Group scaling (Shen et al. 2020, appendix A.1, "layer-scale"; their release puts it in front of
// a norm): every group of consecutive features of a row is divided by its quadratic mean,
//     y = x * rrms,   rrms = 1 / sqrt(mean(x^2) + eps)
// with the mean over one group; groups = 1 is layer scaling. There are no parameters.
//   x (..., features) floating; a group is the next features / groups of a row; rows = the product
//     of the other axes
//   outputs: y like x;  rrms (rows, groups)
// backward (Exact), group_scaling_backward (x, rrms, dy), with xhat = x * rrms:
//     dx = rrms * (dy - xhat * mean(dy * xhat))
//   outputs: dx like x
// errors: a scalar x; groups no divisor of features; an empty group; eps < 0.
// in place: none forward (x is saved); dx over dy.
#pragma once

#include "src/graph/graph.h"
#include "src/ops/norm/layer_norm.h"

namespace keel {

struct GroupScalingAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("groups", &GroupScalingAttrs::groups),
                      field("eps", &GroupScalingAttrs::eps)};
  }
};

// The groups of x, each as a row.
RowSizes scaled_groups(const Shape& x, std::int64_t groups);

// Refuses what the attributes and input 0, x, of an op that scales it cannot be.
void expect_scaling(const InferContext& c, const GroupScalingAttrs& attrs);

extern const OpInfo kGroupScaling, kGroupScalingBackward;

namespace ops {

// Returns y; rrms is output 1.
Value group_scaling(Graph& g, Value x, const GroupScalingAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

// Group scaling (Shen et al. 2020, appendix A.1, "layer-scale"; their release puts it in front of
// a norm): every group of consecutive features of a row is divided by its quadratic mean,
//     y = x * rstd,   rstd = 1 / sqrt(mean(x^2) + eps)
// The mean is that of one group; with groups = 1 this is layer scaling. There are no parameters.
//   x (..., features) floating; a group is the next features / groups of a row, and rows is the
//     product of the sizes of the other axes
//   outputs: y like x;  rstd (rows, groups)
// backward (Exact), group_scaling_backward (x, rstd, dy), with xhat = x * rstd:
//     dx = rstd * (dy - xhat * mean(dy * xhat))
//   outputs: dx like x
// errors: a scalar x; groups no divisor of features; an empty group; eps < 0.
// in place: dx over dy. y is not written over x, which the backward reads.
#pragma once

#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"

namespace keel {

using GroupScalingInput = NormInput;
struct GroupScalingOutput {
  enum Place : int { kY, kRstd };
};
struct GroupScalingBackwardInput {
  enum Place : int { kX, kRstd, kDy };
};
using GroupScalingGradient = NormGradient;

struct GroupScalingAttrs {
  std::int64_t groups = 1;
  double eps = 1e-5;
  static constexpr auto fields() {
    return std::tuple{field("groups", &GroupScalingAttrs::groups),
                      field("eps", &GroupScalingAttrs::eps)};
  }
};

// x as a matrix that has each group of x as a row.
RowSizes scaled_groups(const Shape& x, std::int64_t groups);

// Throws unless x and the attributes of an op that scales it go together, as said above.
void expect_scaling(const InferContext& c, const GroupScalingAttrs& attrs);

extern const OpInfo kGroupScaling, kGroupScalingBackward;

namespace ops {

// Returns y.
Value group_scaling(Graph& g, Value x, const GroupScalingAttrs& attrs = {});

}  // namespace ops
}  // namespace keel

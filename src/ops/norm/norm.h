// What every norm op shares: how a statistic is formed, and the shapes of gain and bias.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// The scale s that a centred norm divides by, from SS = sum (x - mean)^2 over n elements:
//     s = sqrt(SS / N + eps),  or with eps_outside  s = sqrt(SS / N) + eps,
// where N = n, or n - 1 when `unbiased`.
struct NormStatistic {
  double eps = 1e-5;
  bool unbiased = false, eps_outside = false;
};

// Throws unless eps >= 0 and, for an unbiased statistic, `count` >= 2.
void expect_statistic(const InferContext& c, const NormStatistic& statistic, std::int64_t count);

// Inputs `gain` and `bias` at ports i and i + 1, each present or absent: shape `expected` and the
// element type of x (input 0).
void expect_affine(const InferContext& c, int i, const Shape& expected);

// The type of the gradient of an optional input: its own type, or absent.
TensorType gradient_type(const InferContext& c, int i);

namespace ops {

// The learned scale and shift of a norm; each may be absent.
struct NormAffine {
  Value gain, bias;
};

}  // namespace ops

}  // namespace keel

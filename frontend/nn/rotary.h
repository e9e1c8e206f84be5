// Rotary position embedding (Su et al. 2021, "RoFormer").
#pragma once

#include "frontend/nn/net.h"

namespace keel::nn {

struct RotaryOptions {
  std::int64_t heads = 1;
  std::int64_t first = 0;  // the position of the first row
  double base = 10000;
};

// Rotates every head's slice z of x by its position p = first + row. With h half the width of a
// head and a_i = p base^(-i / h), i < h:
//     y_i = z_i cos a_i - z_(i+h) sin a_i      y_(i+h) = z_(i+h) cos a_i + z_i sin a_i
//   x (batch, length, heads * width of a head), y like x
// The product of a rotated query and a rotated key depends only on the difference of their
// positions. The pairs are features i and i + h, as in Llama; Su et al. pair features 2 i and
// 2 i + 1, which is the same after a permutation of the weights of q and k. The angles are computed
// in double. Composed of slices, a concatenation, products and a sum; the gradient is exact.
// Throws Error{kUsage} unless heads of an even width divide the features, and for a base that is
// not above 0.
Value rotary(Net& net, Value x, const RotaryOptions& options);

}  // namespace keel::nn

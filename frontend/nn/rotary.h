// Rotary position embedding (Su et al. 2021, "RoFormer").
#pragma once

#include "frontend/nn/net.h"

namespace keel::nn {

struct RotaryOptions {
  std::int64_t first = 0;  // the position of the first row
  double base = 10000;
};

// Rotates every head's slice z of x by its position p = first + row. With h half the width of a
// head and a_i = p base^(-i / h), i < h:
//     y_i = z_i cos a_i - z_(i+h) sin a_i      y_(i+h) = z_(i+h) cos a_i + z_i sin a_i
//   x (batch, length, heads * width), y like x
// The product of a rotated query and a rotated key depends only on the difference of their
// positions. The pairs are features i and i + h, as in Llama; Su et al. pair features 2 i and
// 2 i + 1, which is the same after a permutation of the weights of q and k. The angles are computed
// in double. Composed of slices, a concatenation, products and a sum; the gradient is exact. The
// net must outlive the layer.
class Rotary {
 public:
  // For `length` positions and heads of this width. Throws Error{kUsage} for an odd width, and for
  // a base that is not above 0.
  Rotary(Net& net, std::int64_t length, std::int64_t width, const RotaryOptions& options = {});
  // Throws Error{kUsage} for an x of another length, and for features that are no heads.
  Value operator()(Value x) const;

 private:
  Net* net_;
  std::int64_t length_, width_;
  // (length, 1, width), by which z and its exchanged halves are multiplied: [cos a, cos a] and
  // [-sin a, sin a].
  Value cosines_, sines_;
};

}  // namespace keel::nn

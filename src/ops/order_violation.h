// How far each x_i exceeds each y_j in the order of coordinates (Vendrov, Kiros, Fidler, Urtasun
// 2016, "Order-Embeddings of Images and Language", equation 2):
//
//     e_ij = sum_k max(0, x_ik - y_jk)^2
//
// which is 0 exactly where y_j is at least x_i in every coordinate.
//   x (n, width), y (m, width) floating, of one type; e (n, m)
// backward: with the pairs (i, j) whose de_ij is not 0,
//     dx_ik =   2 sum_j de_ij max(0, x_ik - y_jk)
//     dy_jk = - 2 sum_i de_ij max(0, x_ik - y_jk)
// With a margin most pairs have no gradient, so kernels skip them.
#pragma once

#include "src/graph/graph.h"

namespace keel {

struct OrderViolationInput {
  enum Place : int { kX, kY, kDe };  // the last only of the backward
};
struct OrderViolationOutput {
  enum Place : int { kDx, kDy };  // of the backward
};

extern const OpInfo kOrderViolation;
extern const OpInfo kOrderViolationBackward;  // (x, y, de) -> dx, dy

// Rows of x and of y, and their width.
struct OrderViolationSizes {
  std::int64_t n, m, width;
};
OrderViolationSizes order_violation_sizes(const Shape& x, const Shape& y);

namespace ops {

Value order_violation(Graph& g, Value x, Value y);

}  // namespace ops
}  // namespace keel

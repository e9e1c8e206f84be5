// Errors of an order between points.
#include "src/ops/order_violation.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

using In = OrderViolationInput;

Matrix points(const TensorRef& t) { return matrix(t, t.type.shape[0], t.type.shape[1]); }

// e_ij = sum_k max(0, x_ik - y_jk)^2
void order_violation(const Binding& b) {
  const Matrix x = points(b.inputs[In::kX]), y = points(b.inputs[In::kY]);
  Matrix e = points(b.outputs[0]);
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    for (Eigen::Index j = 0; j < y.rows(); ++j) {
      e(i, j) = (x.row(i) - y.row(j)).cwiseMax(0).squaredNorm();
    }
  }
}

void order_violation_backward(const Binding& b) {
  const Matrix x = points(b.inputs[In::kX]), y = points(b.inputs[In::kY]);
  const Matrix de = points(b.inputs[In::kDe]);
  Matrix dx = points(b.outputs[OrderViolationOutput::kDx]);
  Matrix dy = points(b.outputs[OrderViolationOutput::kDy]);
  dx.setZero();
  dy.setZero();
  for (Eigen::Index i = 0; i < x.rows(); ++i) {
    for (Eigen::Index j = 0; j < y.rows(); ++j) {
      if (de(i, j) == 0) continue;
      const Eigen::RowVectorXd d = 2 * de(i, j) * (x.row(i) - y.row(j)).cwiseMax(0);
      dx.row(i) += d;
      dy.row(j) -= d;
    }
  }
}

}  // namespace

Prepared prepare_order_violation(const NodeContext&) { return kernel_of(order_violation); }
Prepared prepare_order_violation_backward(const NodeContext&) {
  return kernel_of(order_violation_backward);
}

}  // namespace keel::reference

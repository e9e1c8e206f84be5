// Softmax and its logarithm, row by row. All views are (rows, width).
#include "src/ops/softmax.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

Matrix rows_of(const TensorRef& t) {
  const std::int64_t width = t.type.shape.back();
  return matrix(t, t.elements() / width, width);
}

// y = exp(x - max) / sum exp(x - max)
void softmax(const Binding& b) {
  const Matrix x = rows_of(b.inputs[0]);
  Matrix y = rows_of(b.outputs[0]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd weights = (x.row(row).array() - x.row(row).maxCoeff()).exp();
    y.row(row) = weights / weights.sum();
  }
}

// dx = y (dy - sum(dy y))
void softmax_backward(const Binding& b) {
  using In = SoftmaxBackwardInput;
  const Matrix dy = rows_of(b.inputs[In::kDy]), y = rows_of(b.inputs[In::kY]);
  Matrix dx = rows_of(b.outputs[0]);
  for (Eigen::Index row = 0; row < y.rows(); ++row) {
    const double projection = dy.row(row).dot(y.row(row));
    dx.row(row) = y.row(row).array() * (dy.row(row).array() - projection);
  }
}

// y = x - max - log sum exp(x - max)
void log_softmax(const Binding& b) {
  const Matrix x = rows_of(b.inputs[0]);
  Matrix y = rows_of(b.outputs[0]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd shifted = x.row(row).array() - x.row(row).maxCoeff();
    y.row(row) = shifted.array() - std::log(shifted.array().exp().sum());
  }
}

// dx = dy - exp(y) sum(dy)
void log_softmax_backward(const Binding& b) {
  using In = SoftmaxBackwardInput;
  const Matrix dy = rows_of(b.inputs[In::kDy]), y = rows_of(b.inputs[In::kY]);
  Matrix dx = rows_of(b.outputs[0]);
  for (Eigen::Index row = 0; row < y.rows(); ++row) {
    const double total = dy.row(row).sum();
    dx.row(row) = dy.row(row).array() - y.row(row).array().exp() * total;
  }
}

}  // namespace

Prepared prepare_softmax(const NodeContext&) { return kernel_of(softmax); }
Prepared prepare_softmax_backward(const NodeContext&) { return kernel_of(softmax_backward); }
Prepared prepare_log_softmax(const NodeContext&) { return kernel_of(log_softmax); }
Prepared prepare_log_softmax_backward(const NodeContext&) {
  return kernel_of(log_softmax_backward);
}

}  // namespace keel::reference

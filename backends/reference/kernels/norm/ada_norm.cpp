// Reference AdaNorm, row by row.
#include "src/ops/norm/ada_norm.h"

#include "backends/reference/kernels/norm/centred_row.h"
#include "src/ops/norm/row_norm.h"

namespace keel::reference {
namespace {

// y = C * (1 - k * xhat) * xhat. x, y (rows, width); mean, rstd (rows).
void forward(const Binding& b, const RowSizes& sizes, const AdaNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[0], sizes.rows, sizes.width);
  Vector mean = vector(b.outputs[1]), rstd = vector(b.outputs[2]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const RowStatistics of_row = row_statistics(x.row(row), attrs.statistic());
    mean[row] = of_row.mean;
    rstd[row] = of_row.rstd;
    const Eigen::RowVectorXd xhat = (x.row(row).array() - mean[row]) * rstd[row];
    y.row(row) = attrs.C * (1 - attrs.k * xhat.array()) * xhat.array();
  }
}

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r). g = phi * dy, or, where phi is not
// detached, dy times the derivative of phi * xhat.
void backward(const Binding& b, const RowSizes& sizes, const AdaNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[3], sizes.rows, sizes.width);
  const Vector mean = vector(b.inputs[1]), rstd = vector(b.inputs[2]);
  Matrix dx = matrix(b.outputs[0], sizes.rows, sizes.width);
  const double n = variance_count(attrs.statistic(), sizes.width);
  const double k = attrs.detach ? attrs.k : 2 * attrs.k;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = (x.row(row).array() - mean[row]) * rstd[row];
    const Eigen::RowVectorXd g = attrs.C * (1 - k * xhat.array()) * dy.row(row).array();
    const double slope = g.dot(xhat) / n * outside_factor(rstd[row], attrs.statistic());
    dx.row(row) = rstd[row] * (g.array() - g.mean() - xhat.array() * slope);
  }
}

}  // namespace

Prepared prepare_ada_norm(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_ada_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference

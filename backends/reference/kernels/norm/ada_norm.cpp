// Reference AdaNorm, row by row.
#include "src/ops/norm/ada_norm.h"

#include "backends/reference/kernels/norm/centred_row.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = AdaNormInput;
using Out = AdaNormOutput;
using BackIn = AdaNormBackwardInput;
using BackOut = AdaNormGradient;

// y = C * (1 - k * xhat) * xhat. x, y (rows, width); mean, rstd (rows).
void forward(const Binding& b, const RowSizes& sizes, const AdaNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector mean = vector(b.outputs[Out::kMean]), rstd = vector(b.outputs[Out::kRstd]);
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
  const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector mean = vector(b.inputs[BackIn::kMean]), rstd = vector(b.inputs[BackIn::kRstd]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  const double n = variance_count(sizes.width, attrs.unbiased);
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
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_ada_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<AdaNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference

// Reference layer norm with detached statistics, row by row.
#include "src/ops/norm/detach_norm.h"

#include "backends/reference/kernels/norm/centred_row.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = DetachNormInput;
using Out = DetachNormOutput;
using BackIn = DetachNormBackwardInput;
using BackOut = DetachNormGradient;

// y = (x - mean) * rstd. x, y (rows, width); mean, rstd (rows).
void forward(const Binding& b, const RowSizes& sizes, const NormStatistic& statistic) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector mean = vector(b.outputs[Out::kMean]), rstd = vector(b.outputs[Out::kRstd]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const RowStatistics of_row = row_statistics(x.row(row), statistic);
    mean[row] = of_row.mean;
    rstd[row] = of_row.rstd;
    y.row(row) = (x.row(row).array() - mean[row]) * rstd[row];
  }
}

// dx = rstd * (dy - what flows through the mean - what flows through the variance).
void backward(const Binding& b, const RowSizes& sizes, const DetachNormAttrs& attrs) {
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector rstd = vector(b.inputs[BackIn::kRstd]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  const double n = variance_count(sizes.width, attrs.unbiased);
  for (Eigen::Index row = 0; row < dy.rows(); ++row) {
    Eigen::RowVectorXd through = Eigen::RowVectorXd::Zero(sizes.width);
    if (!attrs.detach_mean) through.array() += dy.row(row).mean();
    if (!attrs.detach_variance) {
      const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
      const double mean = vector(b.inputs[BackIn::kMean])[row];
      const Eigen::RowVectorXd xhat = (x.row(row).array() - mean) * rstd[row];
      through += xhat * (dy.row(row).dot(xhat) / n * outside_factor(rstd[row], attrs.statistic()));
    }
    dx.row(row) = rstd[row] * (dy.row(row) - through);
  }
}

}  // namespace

Prepared prepare_detach_norm(const NodeContext& context) {
  const auto attrs = context.attrs<DetachNormAttrs>();
  const RowSizes sizes = row_sizes(context.output().shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.statistic()); });
}

Prepared prepare_detach_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<DetachNormAttrs>();
  const RowSizes sizes = row_sizes(context.output().shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference

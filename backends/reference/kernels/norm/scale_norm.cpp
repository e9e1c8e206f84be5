// Reference scaled l2 norm, row by row.
#include "src/ops/norm/scale_norm.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = ScaleNormInput;
using Out = ScaleNormOutput;
using BackIn = ScaleNormBackwardInput;
using BackOut = ScaleNormGradient;

double gain_of(const Binding& b) {
  return b.inputs[In::kGain] ? *b.inputs[In::kGain].as<double>() : 1;
}

// y = gain * x * rstd. x, y (rows, width); rstd (rows).
void forward(const Binding& b, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector rstd = vector(b.outputs[Out::kRstd]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    rstd[row] = 1 / std::max(x.row(row).norm(), eps);
    y.row(row) = gain_of(b) * (x.row(row) * rstd[row]);
  }
}

// dx = gain * rstd * (dy - xhat * sum(dy * xhat)), without the sum where rstd is 1 / eps.
void backward(const Binding& b, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector rstd = vector(b.inputs[BackIn::kRstd]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  double dgain = 0;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = x.row(row) * rstd[row];
    const double product = dy.row(row).dot(xhat), slope = rstd[row] == 1 / eps ? 0 : product;
    dgain += product;
    dx.row(row) = gain_of(b) * rstd[row] * (dy.row(row) - xhat * slope);
  }
  if (b.outputs[BackOut::kDgain]) *b.outputs[BackOut::kDgain].as<double>() = dgain;
}

}  // namespace

Prepared prepare_scale_norm(const NodeContext& context) {
  const auto attrs = context.attrs<ScaleNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.eps); });
}

Prepared prepare_scale_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<ScaleNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs.eps); });
}

}  // namespace keel::reference

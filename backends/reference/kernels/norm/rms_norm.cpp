// Reference root mean square norm, row by row.
#include "src/ops/norm/rms_norm.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = RmsNormInput;
using Out = RmsNormOutput;
using BackIn = RmsNormBackwardInput;
using BackOut = RmsNormGradient;

// y = x * rstd * gain + bias. x, y (rows, width); rstd (rows).
void forward(const Binding& b, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector rstd = vector(b.outputs[Out::kRstd]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    rstd[row] = 1 / std::sqrt(x.row(row).squaredNorm() / double(sizes.width) + eps);
    y.row(row) = x.row(row) * rstd[row];
    if (b.inputs[In::kGain]) y.row(row).array() *= vector(b.inputs[In::kGain]).transpose().array();
    if (b.inputs[In::kBias]) y.row(row) += vector(b.inputs[In::kBias]).transpose();
  }
}

// dx = rstd * (g - xhat * mean(g * xhat)), g = dy * gain.
void backward(const Binding& b, const RowSizes& sizes) {
  const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector rstd = vector(b.inputs[BackIn::kRstd]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  Eigen::RowVectorXd dgain = Eigen::RowVectorXd::Zero(sizes.width), dbias = dgain;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = x.row(row) * rstd[row];
    Eigen::RowVectorXd g = dy.row(row);
    dgain += g.cwiseProduct(xhat);
    dbias += g;
    if (b.inputs[BackIn::kGain]) g.array() *= vector(b.inputs[BackIn::kGain]).transpose().array();
    dx.row(row) = rstd[row] * (g - xhat * (g.dot(xhat) / double(sizes.width)));
  }
  if (b.outputs[BackOut::kDgain]) vector(b.outputs[BackOut::kDgain]) = dgain;
  if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias]) = dbias;
}

}  // namespace

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.eps); });
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const RowSizes sizes =
      row_sizes(context.input(BackIn::kX).shape, context.attrs<RmsNormBackwardAttrs>().axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference

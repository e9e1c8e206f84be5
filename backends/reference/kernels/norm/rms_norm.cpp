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

// Returns the factor of xhat; `gain` is the place of the gain.
Eigen::RowVectorXd weights(const Binding& b, int gain, const RowSizes& sizes, double offset) {
  if (!b.inputs[gain]) return Eigen::RowVectorXd::Ones(sizes.width);
  return vector(b.inputs[gain]).transpose().array() + offset;
}

// y = x * rstd * w + bias. x, y (rows, width); rstd (rows).
void forward(const Binding& b, const RowSizes& sizes, const RmsNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector rstd = vector(b.outputs[Out::kRstd]);
  const Eigen::RowVectorXd w = weights(b, In::kGain, sizes, attrs.offset);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    rstd[row] = 1 / std::sqrt(x.row(row).squaredNorm() / double(sizes.width) + attrs.eps);
    y.row(row) = (x.row(row) * rstd[row]).cwiseProduct(w);
    if (b.inputs[In::kBias]) y.row(row) += vector(b.inputs[In::kBias]).transpose();
  }
}

// dx = rstd * (g - xhat * mean(g * xhat)), g = dy * w.
void backward(const Binding& b, const RowSizes& sizes, double offset) {
  const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector rstd = vector(b.inputs[BackIn::kRstd]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  const Eigen::RowVectorXd w = weights(b, BackIn::kGain, sizes, offset);
  Eigen::RowVectorXd dgain = Eigen::RowVectorXd::Zero(sizes.width), dbias = dgain;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = x.row(row) * rstd[row];
    Eigen::RowVectorXd g = dy.row(row);
    dgain += g.cwiseProduct(xhat);
    dbias += g;
    g = g.cwiseProduct(w);
    dx.row(row) = rstd[row] * (g - xhat * (g.dot(xhat) / double(sizes.width)));
  }
  if (b.outputs[BackOut::kDgain]) vector(b.outputs[BackOut::kDgain]) = dgain;
  if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias]) = dbias;
}

}  // namespace

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormBackwardAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs.offset); });
}

}  // namespace keel::reference

// Reference layer norm, row by row.
#include "src/ops/norm/layer_norm.h"

#include "backends/reference/kernels/norm/centred_row.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {
namespace {

using In = LayerNormInput;
using Out = LayerNormOutput;
using BackIn = LayerNormBackwardInput;
using BackOut = LayerNormGradient;

// y = (x - mean) * rstd * gain + bias. x, y (rows, width); mean, rstd (rows).
// The mean is taken relative to the first element, so that a constant row has exactly its value.
void forward(const Binding& b, const RowSizes& sizes, const LayerNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[In::kX], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[Out::kY], sizes.rows, sizes.width);
  Vector mean = vector(b.outputs[Out::kMean]), rstd = vector(b.outputs[Out::kRstd]);
  const double n = variance_count(sizes.width, attrs.unbiased);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    mean[row] = x(row, 0) + (x.row(row).array() - x(row, 0)).mean();
    const Eigen::RowVectorXd centred = x.row(row).array() - mean[row];
    const double variance = centred.squaredNorm() / n;
    rstd[row] = attrs.eps_outside ? 1 / (std::sqrt(variance) + attrs.eps)
                                  : 1 / std::sqrt(variance + attrs.eps);
    y.row(row) = centred * rstd[row];
    if (b.inputs[In::kGain]) y.row(row).array() *= vector(b.inputs[In::kGain]).transpose().array();
    if (b.inputs[In::kBias]) y.row(row) += vector(b.inputs[In::kBias]).transpose();
  }
}

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r), g = dy * gain.
void backward(const Binding& b, const RowSizes& sizes, const LayerNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[BackIn::kX], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[BackIn::kDy], sizes.rows, sizes.width);
  const Vector mean = vector(b.inputs[BackIn::kMean]), rstd = vector(b.inputs[BackIn::kRstd]);
  Matrix dx = matrix(b.outputs[BackOut::kDx], sizes.rows, sizes.width);
  Eigen::RowVectorXd dgain = Eigen::RowVectorXd::Zero(sizes.width), dbias = dgain;
  const double n = variance_count(sizes.width, attrs.unbiased);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = (x.row(row).array() - mean[row]) * rstd[row];
    Eigen::RowVectorXd g = dy.row(row);
    dgain += g.cwiseProduct(xhat);
    dbias += g;
    if (b.inputs[BackIn::kGain]) g.array() *= vector(b.inputs[BackIn::kGain]).transpose().array();
    const double slope = g.dot(xhat) / n * outside_factor(rstd[row], attrs.statistic());
    dx.row(row) = rstd[row] * (g.array() - g.mean() - xhat.array() * slope);
  }
  if (b.outputs[BackOut::kDgain]) vector(b.outputs[BackOut::kDgain]) = dgain;
  if (b.outputs[BackOut::kDbias]) vector(b.outputs[BackOut::kDbias]) = dbias;
}

}  // namespace

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(In::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormBackwardAttrs>();
  const RowSizes sizes = row_sizes(context.input(BackIn::kX).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference

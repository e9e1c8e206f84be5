// Reference layer norm, row by row.
#include "src/ops/norm/layer_norm.h"

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

// y = (x - mean) * rstd * gain + bias. x, y (rows, width); mean, rstd (rows).
// The mean is taken relative to the first element, so that a constant row has exactly its value.
void forward(const Binding& b, const RowSizes& sizes, const LayerNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[0], sizes.rows, sizes.width);
  Vector mean = vector(b.outputs[1]), rstd = vector(b.outputs[2]);
  const double n = double(sizes.width) - (attrs.unbiased ? 1 : 0);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    mean[row] = x(row, 0) + (x.row(row).array() - x(row, 0)).mean();
    const Eigen::RowVectorXd centred = x.row(row).array() - mean[row];
    const double variance = centred.squaredNorm() / n;
    rstd[row] = attrs.eps_outside ? 1 / (std::sqrt(variance) + attrs.eps)
                                  : 1 / std::sqrt(variance + attrs.eps);
    y.row(row) = centred * rstd[row];
    if (b.inputs[1]) y.row(row).array() *= vector(b.inputs[1]).transpose().array();
    if (b.inputs[2]) y.row(row) += vector(b.inputs[2]).transpose();
  }
}

// s / (s - eps): what an eps outside the root adds to ds/dx; 0 on a constant row.
double outside_factor(double rstd, const LayerNormAttrs& attrs) {
  if (!attrs.eps_outside) return 1;
  const double deviation = 1 / rstd - attrs.eps;
  return deviation > 0 ? 1 / (rstd * deviation) : 0;
}

// dx = rstd * (g - mean(g) - xhat * sum(g * xhat) / N * r), g = dy * gain.
void backward(const Binding& b, const RowSizes& sizes, const LayerNormAttrs& attrs) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[4], sizes.rows, sizes.width);
  const Vector mean = vector(b.inputs[2]), rstd = vector(b.inputs[3]);
  Matrix dx = matrix(b.outputs[0], sizes.rows, sizes.width);
  Eigen::RowVectorXd dgain = Eigen::RowVectorXd::Zero(sizes.width), dbias = dgain;
  const double n = double(sizes.width) - (attrs.unbiased ? 1 : 0);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = (x.row(row).array() - mean[row]) * rstd[row];
    Eigen::RowVectorXd g = dy.row(row);
    dgain += g.cwiseProduct(xhat);
    dbias += g;
    if (b.inputs[1]) g.array() *= vector(b.inputs[1]).transpose().array();
    const double slope = g.dot(xhat) / n * outside_factor(rstd[row], attrs);
    dx.row(row) = rstd[row] * (g.array() - g.mean() - xhat.array() * slope);
  }
  if (b.outputs[1]) vector(b.outputs[1]) = dgain;
  if (b.outputs[2]) vector(b.outputs[2]) = dbias;
}

}  // namespace

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs); });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes, attrs); });
}

}  // namespace keel::reference

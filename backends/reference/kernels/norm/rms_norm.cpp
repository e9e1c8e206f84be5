// Reference root mean square norm, row by row.
#include "src/ops/norm/rms_norm.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/row_norm.h"

namespace keel::reference {
namespace {

// y = x * rrms * gain + bias. x, y (rows, width); rrms (rows).
void forward(const Binding& b, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[0], sizes.rows, sizes.width);
  Vector rrms = vector(b.outputs[1]);
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    rrms[row] = 1 / std::sqrt(x.row(row).squaredNorm() / double(sizes.width) + eps);
    y.row(row) = x.row(row) * rrms[row];
    if (b.inputs[1]) y.row(row).array() *= vector(b.inputs[1]).transpose().array();
    if (b.inputs[2]) y.row(row) += vector(b.inputs[2]).transpose();
  }
}

// dx = rrms * (g - xhat * mean(g * xhat)), g = dy * gain.
void backward(const Binding& b, const RowSizes& sizes) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[3], sizes.rows, sizes.width);
  const Vector rrms = vector(b.inputs[2]);
  Matrix dx = matrix(b.outputs[0], sizes.rows, sizes.width);
  Eigen::RowVectorXd dgain = Eigen::RowVectorXd::Zero(sizes.width), dbias = dgain;
  for (Eigen::Index row = 0; row < x.rows(); ++row) {
    const Eigen::RowVectorXd xhat = x.row(row) * rrms[row];
    Eigen::RowVectorXd g = dy.row(row);
    dgain += g.cwiseProduct(xhat);
    dbias += g;
    if (b.inputs[1]) g.array() *= vector(b.inputs[1]).transpose().array();
    dx.row(row) = rrms[row] * (g - xhat * (g.dot(xhat) / double(sizes.width)));
  }
  if (b.outputs[1]) vector(b.outputs[1]) = dgain;
  if (b.outputs[2]) vector(b.outputs[2]) = dbias;
}

}  // namespace

Prepared prepare_rms_norm(const NodeContext& context) {
  const auto attrs = context.attrs<RmsNormAttrs>();
  const RowSizes sizes = row_sizes(context.input(0).shape, attrs.axes);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.eps); });
}

Prepared prepare_rms_norm_backward(const NodeContext& context) {
  const RowSizes sizes = row_sizes(context.input(0).shape, context.attrs<RmsNormAttrs>().axes);
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference

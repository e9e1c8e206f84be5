// Reference group scaling, group by group.
#include "src/ops/norm/group_scaling.h"

#include <cmath>

#include "backends/reference/kernels/kernels.h"

namespace keel::reference {
namespace {

// y = x * rrms. x, y (groups of all rows, width); rrms (groups of all rows).
void forward(const Binding& b, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  Matrix y = matrix(b.outputs[0], sizes.rows, sizes.width);
  Vector rrms = vector(b.outputs[1]);
  for (Eigen::Index k = 0; k < x.rows(); ++k) {
    rrms[k] = 1 / std::sqrt(x.row(k).squaredNorm() / double(sizes.width) + eps);
    y.row(k) = x.row(k) * rrms[k];
  }
}

// dx = rrms * (dy - xhat * mean(dy * xhat)).
void backward(const Binding& b, const RowSizes& sizes) {
  const Matrix x = matrix(b.inputs[0], sizes.rows, sizes.width);
  const Matrix dy = matrix(b.inputs[2], sizes.rows, sizes.width);
  const Vector rrms = vector(b.inputs[1]);
  Matrix dx = matrix(b.outputs[0], sizes.rows, sizes.width);
  for (Eigen::Index k = 0; k < x.rows(); ++k) {
    const Eigen::RowVectorXd xhat = x.row(k) * rrms[k];
    dx.row(k) = rrms[k] * (dy.row(k) - xhat * (dy.row(k).dot(xhat) / double(sizes.width)));
  }
}

}  // namespace

Prepared prepare_group_scaling(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) { forward(b, sizes, attrs.eps); });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) { backward(b, sizes); });
}

}  // namespace keel::reference

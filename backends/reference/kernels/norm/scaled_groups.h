// Group scaling, one group at a time, for the op and for norms that apply it first.
#pragma once

#include <cmath>

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/group_scaling.h"

namespace keel::reference {

// y = x * rstd, rstd = 1 / sqrt(mean(x^2) + eps). x and y are (groups of all rows, width);
// rstd is (groups of all rows).
struct ScaledGroups {
  TensorRef x, y, rstd;
};
inline void scale_groups(const ScaledGroups& of, const RowSizes& sizes, double eps) {
  const Matrix x = matrix(of.x, sizes.rows, sizes.width);
  Matrix y = matrix(of.y, sizes.rows, sizes.width);
  Vector rstd = vector(of.rstd);
  for (Eigen::Index k = 0; k < x.rows(); ++k) {
    rstd[k] = 1 / std::sqrt(x.row(k).squaredNorm() / double(sizes.width) + eps);
    y.row(k) = x.row(k) * rstd[k];
  }
}

// dx = rstd * (dy - xhat * mean(dy * xhat)), xhat = x * rstd. dx may be dy.
struct ScaledGroupsGradient {
  TensorRef x, rstd, dy, dx;
};
inline void scale_groups_backward(const ScaledGroupsGradient& of, const RowSizes& sizes) {
  const Matrix x = matrix(of.x, sizes.rows, sizes.width);
  const Matrix dy = matrix(of.dy, sizes.rows, sizes.width);
  const Vector rstd = vector(of.rstd);
  Matrix dx = matrix(of.dx, sizes.rows, sizes.width);
  for (Eigen::Index k = 0; k < x.rows(); ++k) {
    const Eigen::RowVectorXd xhat = x.row(k) * rstd[k];
    dx.row(k) = rstd[k] * (dy.row(k) - xhat * (dy.row(k).dot(xhat) / double(sizes.width)));
  }
}

}  // namespace keel::reference

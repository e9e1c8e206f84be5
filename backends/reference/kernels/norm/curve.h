// Reference norms of elements, y = gain f(u) + bias with u = alpha x + shift (NormCurve).
#pragma once

#include "backends/reference/kernels/kernels.h"
#include "src/ops/norm/sizes.h"

namespace keel::reference {

// The one number of a tensor, or 0 where it is absent.
inline double number_of(const TensorRef& t) { return t ? *t.as<double>() : 0; }

// A gain or bias along a row, `otherwise` where it is absent.
inline Eigen::RowVectorXd along_row(const TensorRef& t, std::int64_t width, double otherwise) {
  if (!t) return Eigen::RowVectorXd::Constant(width, otherwise);
  return vector(t).transpose();
}

// u of a row of x.
inline Eigen::RowVectorXd argument(const Eigen::RowVectorXd& x, const TensorRef& alpha,
                                   const TensorRef& shift) {
  return (x * number_of(alpha)).array() + number_of(shift);
}

// x, y (rows, width).
struct CurveForward {
  TensorRef x, gain, bias, alpha, shift, y;

  void run(const NormCurve& f, const RowSizes& sizes) const {
    const Matrix in = matrix(x, sizes.rows, sizes.width);
    Matrix out = matrix(y, sizes.rows, sizes.width);
    const Eigen::RowVectorXd gains = along_row(gain, sizes.width, 1),
                             biases = along_row(bias, sizes.width, 0);
    for (Eigen::Index row = 0; row < in.rows(); ++row) {
      const Eigen::RowVectorXd u = argument(in.row(row), alpha, shift);
      out.row(row) = u.unaryExpr(f.value).cwiseProduct(gains) + biases;
    }
  }
};

// dx = alpha k with k = dy gain f'(u); dalpha = sum(k x), dshift = sum(k).
struct CurveBackward {
  TensorRef x, gain, alpha, shift, dy, dx, dgain, dbias, dalpha, dshift;

  void run(const NormCurve& f, const RowSizes& sizes) const {
    const Matrix in = matrix(x, sizes.rows, sizes.width),
                 of_y = matrix(dy, sizes.rows, sizes.width);
    Matrix of_x = matrix(dx, sizes.rows, sizes.width);
    const Eigen::RowVectorXd gains = along_row(gain, sizes.width, 1);
    Eigen::RowVectorXd of_gain = Eigen::RowVectorXd::Zero(sizes.width), of_bias = of_gain;
    double of_alpha = 0, of_shift = 0;
    for (Eigen::Index row = 0; row < in.rows(); ++row) {
      const Eigen::RowVectorXd u = argument(in.row(row), alpha, shift);
      const Eigen::RowVectorXd k =
          of_y.row(row).cwiseProduct(gains).cwiseProduct(u.unaryExpr(f.slope));
      of_gain += of_y.row(row).cwiseProduct(u.unaryExpr(f.value));
      of_bias += of_y.row(row);
      of_alpha += k.dot(in.row(row));
      of_shift += k.sum();
      of_x.row(row) = number_of(alpha) * k;
    }
    if (dgain) vector(dgain) = of_gain;
    if (dbias) vector(dbias) = of_bias;
    if (dalpha) *dalpha.as<double>() = of_alpha;
    if (dshift) *dshift.as<double>() = of_shift;
  }
};

}  // namespace keel::reference

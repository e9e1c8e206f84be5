// The kernels of the reference backend. Each function takes a node and returns how to bind its
// kernel. All floating data is double.
#pragma once

#include <Eigen/Core>

#include "src/runtime/backend.h"

namespace keel::reference {

#include "src/runtime/declare_kernels.inc"

// Eigen views of a tensor's data: a row-major (rows, cols) matrix, and a plain vector.
using Matrix = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Vector = Eigen::Map<Eigen::VectorXd>;

inline Matrix matrix(const TensorRef& t, std::int64_t rows, std::int64_t cols) {
  return {t.as<double>(), rows, cols};
}
inline Vector vector(const TensorRef& t) { return {t.as<double>(), t.elements()}; }

}  // namespace keel::reference

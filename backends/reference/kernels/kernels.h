// The kernels of the reference backend: each takes a node and says how to bind its kernel. All
// floating data is double.
#pragma once

#include <Eigen/Core>

#include "src/runtime/backend.h"

namespace keel::reference {

#include "src/runtime/declare_kernels.inc"

// A (rows, cols) row-major view of a tensor's data, and a plain vector view.
using Matrix = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Vector = Eigen::Map<Eigen::VectorXd>;

inline Matrix matrix(const TensorRef& t, std::int64_t rows, std::int64_t cols) {
  return {t.as<double>(), rows, cols};
}
inline Vector vector(const TensorRef& t) { return {t.as<double>(), t.elements()}; }

}  // namespace keel::reference

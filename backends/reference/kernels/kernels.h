// The kernels of the reference backend: each takes a node and says how to bind its kernel. All
// floating data is double.
#pragma once

#include <Eigen/Core>

#include "src/runtime/backend.h"

namespace keel::reference {

Prepared prepare_elementwise(const NodeContext& context);
#define X(op, kernel) Prepared prepare_##kernel(const NodeContext& context);
#include "src/runtime/kernel_list.inc"
#undef X
#define X(name, Name)                                  \
  Prepared prepare_##name(const NodeContext& context); \
  Prepared prepare_##name##_backward(const NodeContext& context);
#include "norm_list.inc"
#undef X

// A (rows, cols) row-major view of a tensor's data, and a plain vector view.
using Matrix = Eigen::Map<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
using Vector = Eigen::Map<Eigen::VectorXd>;

inline Matrix matrix(const TensorRef& t, std::int64_t rows, std::int64_t cols) {
  return {t.as<double>(), rows, cols};
}
inline Vector vector(const TensorRef& t) { return {t.as<double>(), t.elements()}; }

}  // namespace keel::reference

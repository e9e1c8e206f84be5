// Tensors as Eigen's matrices, for formulas written down a second time.
#pragma once

#include <Eigen/Core>

#include "src/core/tensor.h"

namespace keel::study {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// (rows, whatever else there is), in float64.
inline Matrix matrix(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::kF64);
  return Eigen::Map<const Matrix>(wide.as<double>().data(), tensor.shape()[0],
                                  tensor.elements() / tensor.shape()[0]);
}

}  // namespace keel::study

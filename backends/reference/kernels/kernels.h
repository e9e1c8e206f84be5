// The kernels of the reference backend, one function an op: it takes the node and returns how to
// bind its kernel. All floating data is double.
#pragma once

#include <Eigen/Core>

#include "src/runtime/backend.h"

namespace keel::reference {

Prepared prepare_elementwise(const NodeContext& context);
Prepared prepare_matmul(const NodeContext& context);
Prepared prepare_reduce(const NodeContext& context);  // sum, mean, max
Prepared prepare_max_backward(const NodeContext& context);
Prepared prepare_broadcast_to(const NodeContext& context);
Prepared prepare_transpose(const NodeContext& context);
Prepared prepare_slice(const NodeContext& context);
Prepared prepare_concat(const NodeContext& context);
Prepared prepare_pad(const NodeContext& context);
Prepared prepare_softmax(const NodeContext& context);
Prepared prepare_softmax_backward(const NodeContext& context);
Prepared prepare_log_softmax(const NodeContext& context);
Prepared prepare_log_softmax_backward(const NodeContext& context);
Prepared prepare_cross_entropy(const NodeContext& context);
Prepared prepare_cross_entropy_backward(const NodeContext& context);
Prepared prepare_bce_with_logits(const NodeContext& context);
Prepared prepare_bce_with_logits_backward(const NodeContext& context);
Prepared prepare_classification_errors(const NodeContext& context);
Prepared prepare_conv2d(const NodeContext& context);
Prepared prepare_conv2d_backward_input(const NodeContext& context);
Prepared prepare_conv2d_backward_weight(const NodeContext& context);
Prepared prepare_max_pool2d(const NodeContext& context);
Prepared prepare_max_pool2d_backward(const NodeContext& context);
Prepared prepare_avg_pool2d(const NodeContext& context);
Prepared prepare_avg_pool2d_backward(const NodeContext& context);
Prepared prepare_embedding(const NodeContext& context);
Prepared prepare_embedding_backward(const NodeContext& context);
Prepared prepare_dropout(const NodeContext& context);  // and its backward
Prepared prepare_sgd_step(const NodeContext& context);
Prepared prepare_adam_step(const NodeContext& context);
Prepared prepare_sum_squares(const NodeContext& context);

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

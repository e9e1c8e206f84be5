#include "backends/cuda/kernels/kernels.h"
namespace keel::cuda {
Prepared prepare_adam_step(const NodeContext&) { return refuse("pending"); }
Prepared prepare_avg_pool2d(const NodeContext&) { return refuse("pending"); }
Prepared prepare_avg_pool2d_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_bce_with_logits(const NodeContext&) { return refuse("pending"); }
Prepared prepare_bce_with_logits_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_broadcast_to(const NodeContext&) { return refuse("pending"); }
Prepared prepare_classification_errors(const NodeContext&) { return refuse("pending"); }
Prepared prepare_concat(const NodeContext&) { return refuse("pending"); }
Prepared prepare_conv2d(const NodeContext&) { return refuse("pending"); }
Prepared prepare_conv2d_backward_input(const NodeContext&) { return refuse("pending"); }
Prepared prepare_conv2d_backward_weight(const NodeContext&) { return refuse("pending"); }
Prepared prepare_cross_entropy(const NodeContext&) { return refuse("pending"); }
Prepared prepare_cross_entropy_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_dropout(const NodeContext&) { return refuse("pending"); }
Prepared prepare_embedding(const NodeContext&) { return refuse("pending"); }
Prepared prepare_embedding_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_log_softmax(const NodeContext&) { return refuse("pending"); }
Prepared prepare_log_softmax_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_max_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_max_pool2d(const NodeContext&) { return refuse("pending"); }
Prepared prepare_max_pool2d_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_pad(const NodeContext&) { return refuse("pending"); }
Prepared prepare_reduce(const NodeContext&) { return refuse("pending"); }
Prepared prepare_sgd_step(const NodeContext&) { return refuse("pending"); }
Prepared prepare_slice(const NodeContext&) { return refuse("pending"); }
Prepared prepare_softmax(const NodeContext&) { return refuse("pending"); }
Prepared prepare_softmax_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_sum_squares(const NodeContext&) { return refuse("pending"); }
Prepared prepare_transpose(const NodeContext&) { return refuse("pending"); }
}  // namespace keel::cuda

#include "backends/cuda/kernels/kernels.h"
namespace keel::cuda {
Prepared prepare_avg_pool2d(const NodeContext&) { return refuse("pending"); }
Prepared prepare_avg_pool2d_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_conv2d(const NodeContext&) { return refuse("pending"); }
Prepared prepare_conv2d_backward_input(const NodeContext&) { return refuse("pending"); }
Prepared prepare_conv2d_backward_weight(const NodeContext&) { return refuse("pending"); }
Prepared prepare_embedding(const NodeContext&) { return refuse("pending"); }
Prepared prepare_embedding_backward(const NodeContext&) { return refuse("pending"); }
Prepared prepare_max_pool2d(const NodeContext&) { return refuse("pending"); }
Prepared prepare_max_pool2d_backward(const NodeContext&) { return refuse("pending"); }
}

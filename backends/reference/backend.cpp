#include "backends/reference/backend.h"

#include "backends/reference/kernels/kernels.h"
#include "src/runtime/kernel_table.h"

namespace keel::reference {
namespace {

const KernelTable& table() {
  static const KernelTable table = make_kernel_table(
      {
          {"fused_elementwise", prepare_elementwise},
          {"matmul", prepare_matmul},
          {"sum", prepare_reduce},
          {"mean", prepare_reduce},
          {"max", prepare_reduce},
          {"max_backward", prepare_max_backward},
          {"broadcast_to", prepare_broadcast_to},
          {"transpose", prepare_transpose},
          {"slice", prepare_slice},
          {"concat", prepare_concat},
          {"pad", prepare_pad},
          {"softmax", prepare_softmax},
          {"softmax_backward", prepare_softmax_backward},
          {"log_softmax", prepare_log_softmax},
          {"log_softmax_backward", prepare_log_softmax_backward},
          {"cross_entropy", prepare_cross_entropy},
          {"cross_entropy_backward", prepare_cross_entropy_backward},
          {"bce_with_logits", prepare_bce_with_logits},
          {"bce_with_logits_backward", prepare_bce_with_logits_backward},
          {"classification_errors", prepare_classification_errors},
          {"conv2d", prepare_conv2d},
          {"conv2d_backward_input", prepare_conv2d_backward_input},
          {"conv2d_backward_weight", prepare_conv2d_backward_weight},
          {"max_pool2d", prepare_max_pool2d},
          {"max_pool2d_backward", prepare_max_pool2d_backward},
          {"avg_pool2d", prepare_avg_pool2d},
          {"avg_pool2d_backward", prepare_avg_pool2d_backward},
          {"embedding", prepare_embedding},
          {"embedding_backward", prepare_embedding_backward},
          {"dropout", prepare_dropout},
          {"dropout_backward", prepare_dropout},
          {"sgd_step", prepare_sgd_step},
          {"adam_step", prepare_adam_step},
          {"sum_squares", prepare_sum_squares},
#define X(name, Name) {#name, prepare_##name}, {#name "_backward", prepare_##name##_backward},
#include "norm_list.inc"
#undef X
      },
      prepare_elementwise);
  return table;
}

}  // namespace

std::string ReferenceBackend::description() const {
  return fmt::format("Eigen {}.{}.{}, float64, 1 thread", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

Prepared ReferenceBackend::prepare(const NodeContext& context) {
  return prepare_from(table(), context);
}

}  // namespace keel::reference

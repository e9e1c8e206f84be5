// A loss and its gradients, one after the other.
#include "backends/cuda/kernels/kernels.h"
#include "src/runtime/loss_step.h"

namespace keel::cuda {

Prepared prepare_linear_cross_entropy_step(const NodeContext& context) {
  return one_after_the_other(prepare_linear_cross_entropy(context),
                             prepare_linear_cross_entropy_backward(context));
}

}  // namespace keel::cuda

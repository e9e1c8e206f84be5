// Matrix products.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/matmul.h"

namespace keel::cuda {

Prepared prepare_matmul(const NodeContext& context) {
  const auto attrs = context.attrs<MatmulAttrs>();
  Product product{matmul_sizes(context.input(0).shape, context.input(1).shape, attrs),
                  attrs.transpose_a, attrs.transpose_b, context.has(2),
                  attrs.activation == Activation::kRelu};
  return kernel_of(
      [run = plan_product(product)](const Binding& b) {
        run({b.inputs[0].as<const float>(), b.inputs[1].as<const float>(),
             b.inputs[2].as<const float>(), b.outputs[0].as<float>(), b.workspace});
      },
      kProductWorkspace);
}

}  // namespace keel::cuda

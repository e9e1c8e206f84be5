// Matrix products.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/matmul.h"

namespace keel::cuda {

Prepared prepare_matmul(const NodeContext& context) {
  using In = MatmulInput;
  const auto attrs = context.attrs<MatmulAttrs>();
  if (attrs.packed_columns > 0) return refuse("multiplies only by matrices that are not packed");
  Product product{matmul_sizes(context.input(In::kA).shape, context.input(In::kB).shape, attrs),
                  attrs.transpose_a,
                  attrs.transpose_b,
                  context.has(In::kBias),
                  attrs.activation == Activation::kRelu,
                  context.input(In::kA).dtype == DType::kBF16};
  const ProductPlan plan = plan_product(product);
  return kernel_of(
      [run = plan.run](const Binding& b) {
        run({b.inputs[In::kA].data, b.inputs[In::kB].data, b.inputs[In::kBias].as<const float>(),
             b.outputs[0].as<float>(), b.workspace});
      },
      plan.workspace);
}

}  // namespace keel::cuda

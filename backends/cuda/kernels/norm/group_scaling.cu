// Group scaling: every group of a row's features by its quadratic mean.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "src/ops/norm/group_scaling.h"

namespace keel::cuda {

Prepared prepare_group_scaling(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    run_scaled_forward(
        {input(b.inputs[0]), {{}, 1}, {{}, 0}, output(b.outputs[0]), output(b.outputs[1]), sizes},
        QuadraticMean{attrs.eps});
  });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    run_scaled_backward({input(b.inputs[0]),
                         input(b.inputs[2]),
                         {{}, 1},
                         input(b.inputs[1]),
                         output(b.outputs[0]),
                         sizes});
  });
}

}  // namespace keel::cuda

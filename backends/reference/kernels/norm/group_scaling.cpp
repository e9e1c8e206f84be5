// Reference group scaling.
#include "src/ops/norm/group_scaling.h"

#include "backends/reference/kernels/norm/scaled_groups.h"

namespace keel::reference {

Prepared prepare_group_scaling(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    scale_groups({b.inputs[0], b.outputs[0], b.outputs[1]}, sizes, attrs.eps);
  });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    scale_groups_backward({b.inputs[0], b.inputs[1], b.inputs[2], b.outputs[0]}, sizes);
  });
}

}  // namespace keel::reference

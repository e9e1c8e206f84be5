// Reference group scaling.
#include "src/ops/norm/group_scaling.h"

#include "backends/reference/kernels/norm/scaled_groups.h"

namespace keel::reference {
namespace {

using In = GroupScalingInput;
using Out = GroupScalingOutput;
using BackIn = GroupScalingBackwardInput;
using BackOut = GroupScalingGradient;

}  // namespace

Prepared prepare_group_scaling(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(In::kX).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    scale_groups({b.inputs[In::kX], b.outputs[Out::kY], b.outputs[Out::kRstd]}, sizes, attrs.eps);
  });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(BackIn::kX).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    scale_groups_backward({b.inputs[BackIn::kX], b.inputs[BackIn::kRstd], b.inputs[BackIn::kDy],
                           b.outputs[BackOut::kDx]},
                          sizes);
  });
}

}  // namespace keel::reference

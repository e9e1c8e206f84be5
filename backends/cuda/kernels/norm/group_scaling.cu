// Group scaling divides every group of a row's features by its quadratic mean.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/scaled_row.cuh"
#include "src/ops/norm/group_scaling.h"

namespace keel::cuda {
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
    run_scaled_forward({Data(b.inputs[In::kX]),
                        {{}, 1},
                        {{}, 0},
                        Result(b.outputs[Out::kY]),
                        output(b.outputs[Out::kRstd]),
                        sizes},
                       QuadraticMean{attrs.eps});
  });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowSizes sizes = scaled_groups(context.input(BackIn::kX).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    run_scaled_backward({Data(b.inputs[BackIn::kX]),
                         Data(b.inputs[BackIn::kDy]),
                         {{}, 1},
                         input(b.inputs[BackIn::kRstd]),
                         Result(b.outputs[BackOut::kDx]),
                         sizes});
  });
}

}  // namespace keel::cuda

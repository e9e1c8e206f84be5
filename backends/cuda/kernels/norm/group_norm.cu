// Group norm normalizes the channels of a group by their mean and variance; gain and bias are those
// of a channel.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_affine.cuh"
#include "src/ops/norm/group_norm.h"

namespace keel::cuda {
namespace {

using In = GroupNormInput;
using BackIn = GroupNormBackwardInput;

}  // namespace

Prepared prepare_group_norm(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(In::kX).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    const auto run = sizes.inner > 1 ? run_affine_forward<true> : run_affine_rows;
    run(b, sizes, attrs.statistic());
  });
}

Prepared prepare_group_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormBackwardAttrs>();
  const GroupSizes sizes = group_sizes(context.input(BackIn::kX).shape, attrs.groups);
  return kernel_of(
      [=](const Binding& b) {
        const auto run = sizes.inner > 1 ? run_affine_backward<true> : run_affine_rows_backward;
        run(b, sizes, attrs.statistic());
      },
      affine_workspace(sizes));
}

}  // namespace keel::cuda

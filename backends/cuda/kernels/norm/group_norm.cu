// Group norm: the channels of a group by their mean and variance, with gain and bias of a channel.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_affine.cuh"
#include "src/ops/norm/group_norm.h"

namespace keel::cuda {

Prepared prepare_group_norm(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(0).shape, attrs.groups);
  return kernel_of([=](const Binding& b) {
    run_centred_forward(affine_forward(b, sizes, attrs.statistic()),
                        Affine<OfChannel>{input(b.inputs[1]), input(b.inputs[2]), {sizes}});
  });
}

Prepared prepare_group_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(0).shape, attrs.groups);
  return kernel_of(
      [=](const Binding& b) {
        const CentredBackward args = affine_backward(b, sizes, attrs.statistic());
        run_affine_gradients(b, args, sizes);
        run_centred_backward(args, AffineGradient<OfChannel>{input(b.inputs[1]), {sizes}});
      },
      affine_workspace(sizes));
}

}  // namespace keel::cuda

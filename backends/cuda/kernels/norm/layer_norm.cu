// Layer norm: a row by its own mean and variance, with gain and bias.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_affine.cuh"
#include "src/ops/norm/layer_norm.h"

namespace keel::cuda {
namespace {

// A row as the one group of a sample.
GroupSizes groups_of(const NodeContext& context) {
  const auto attrs = context.attrs<LayerNormAttrs>();
  const RowSizes rows = row_sizes(context.input(0).shape, attrs.axes);
  return {rows.rows, 1, rows.width, 1};
}

}  // namespace

Prepared prepare_layer_norm(const NodeContext& context) {
  const GroupSizes sizes = groups_of(context);
  return kernel_of([sizes, attrs = context.attrs<LayerNormAttrs>()](const Binding& b) {
    run_centred_forward(affine_forward(b, sizes, attrs.statistic()),
                        Affine<OfColumn>{input(b.inputs[1]), input(b.inputs[2]), {}});
  });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const GroupSizes sizes = groups_of(context);
  return kernel_of(
      [sizes, attrs = context.attrs<LayerNormAttrs>()](const Binding& b) {
        const CentredBackward args = affine_backward(b, sizes, attrs.statistic());
        run_affine_gradients(b, args, sizes);
        run_centred_backward(args, AffineGradient<OfColumn>{input(b.inputs[1]), {}});
      },
      affine_workspace(sizes));
}

}  // namespace keel::cuda

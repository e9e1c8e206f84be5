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
  const NormStatistic statistic = context.attrs<LayerNormAttrs>().statistic();
  return kernel_of([=](const Binding& b) { run_affine_forward<false>(b, sizes, statistic); });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const GroupSizes sizes = groups_of(context);
  const NormStatistic statistic = context.attrs<LayerNormAttrs>().statistic();
  return kernel_of([=](const Binding& b) { run_affine_backward<false>(b, sizes, statistic); },
                   affine_workspace(sizes));
}

}  // namespace keel::cuda

// Layer norm normalizes a row by its own mean and variance; it has gain and bias.
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/kernels/norm/centred_affine.cuh"
#include "src/ops/norm/layer_norm.h"

namespace keel::cuda {
namespace {

using In = LayerNormInput;
using BackIn = LayerNormBackwardInput;

// Takes a row of x as the one group of a sample.
GroupSizes groups_of(const Shape& x, std::int64_t axes) {
  const RowSizes rows = row_sizes(x, axes);
  return {rows.rows, 1, rows.width, 1};
}

}  // namespace

Prepared prepare_layer_norm(const NodeContext& context) {
  const auto& attrs = context.attrs<LayerNormAttrs>();
  const GroupSizes sizes = groups_of(context.input(In::kX).shape, attrs.axes);
  const NormStatistic statistic = attrs.statistic();
  return kernel_of([=](const Binding& b) { run_affine_forward<false>(b, sizes, statistic); });
}

Prepared prepare_layer_norm_backward(const NodeContext& context) {
  const auto& attrs = context.attrs<LayerNormBackwardAttrs>();
  const GroupSizes sizes = groups_of(context.input(BackIn::kX).shape, attrs.axes);
  const NormStatistic statistic = attrs.statistic();
  return kernel_of([=](const Binding& b) { run_affine_backward<false>(b, sizes, statistic); },
                   affine_workspace(sizes));
}

}  // namespace keel::cuda

// Max and average pooling, and their backward.
#include "src/ops/pool2d.h"

#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"

namespace keel::onednn {
namespace {

Prepared prepare_pool(const NodeContext& context, bool is_max) {
  const auto& attrs = context.attrs<PoolAttrs>();
  const PoolSpec spec{.x = context.input(0).shape,
                      .y = context.output().shape,
                      .window = attrs.window,
                      .stride = attrs.stride,
                      .is_max = is_max};
  return spec.y.elements() == 0 ? do_nothing() : make_pool(spec);
}

Prepared prepare_pool_backward(const NodeContext& context, bool is_max) {
  const auto& attrs = context.attrs<PoolBackwardAttrs>();
  const PoolSpec spec{.x = attrs.shape,
                      .y = context.input(0).shape,
                      .window = attrs.window,
                      .stride = attrs.stride,
                      .is_max = is_max};
  return spec.y.elements() == 0 ? do_nothing() : make_pool_backward(spec);
}

}  // namespace

Prepared prepare_max_pool2d(const NodeContext& context) { return prepare_pool(context, true); }
Prepared prepare_avg_pool2d(const NodeContext& context) { return prepare_pool(context, false); }
Prepared prepare_max_pool2d_backward(const NodeContext& context) {
  return prepare_pool_backward(context, true);
}
Prepared prepare_avg_pool2d_backward(const NodeContext& context) {
  return prepare_pool_backward(context, false);
}

}  // namespace keel::onednn

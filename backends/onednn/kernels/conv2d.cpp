// Convolution, and its backward by input and by weight.
#include "src/ops/conv2d.h"

#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"

namespace keel::onednn {
namespace {

bool is_empty(const Shape& shape) { return shape.elements() == 0; }

}  // namespace

Prepared prepare_conv2d(const NodeContext& context) {
  const auto& attrs = context.attrs<ConvAttrs>();
  const Shape &x = context.input(0).shape, &y = context.output().shape;
  const ConvSpec spec{.x = x,
                      .weight = context.input(1).shape,
                      .y = y,
                      .stride = attrs.stride,
                      .padding = attrs.padding,
                      .bias = context.has(2),
                      .relu = attrs.activation == "relu"};
  if (is_empty(y)) return do_nothing();
  if (is_empty(x)) return fill_bias(y[2] * y[3], spec.relu);
  return make_conv(spec);
}

Prepared prepare_conv2d_backward_input(const NodeContext& context) {
  const auto& attrs = context.attrs<ConvBackwardAttrs>();
  const ConvSpec spec{.x = attrs.shape,
                      .weight = context.input(1).shape,
                      .y = context.input(0).shape,
                      .stride = attrs.stride,
                      .padding = attrs.padding};
  if (is_empty(spec.x)) return do_nothing();
  return is_empty(spec.y) ? fill_zero() : make_conv_backward_input(spec);
}

Prepared prepare_conv2d_backward_weight(const NodeContext& context) {
  const auto& attrs = context.attrs<ConvBackwardAttrs>();
  const ConvSpec spec{.x = context.input(0).shape,
                      .weight = attrs.shape,
                      .y = context.input(1).shape,
                      .stride = attrs.stride,
                      .padding = attrs.padding};
  if (is_empty(spec.weight)) return do_nothing();
  return is_empty(spec.x) ? fill_zero() : make_conv_backward_weight(spec);
}

}  // namespace keel::onednn

// Convolution, and its backward by input and by weight.
#include "src/ops/conv2d.h"

#include "backends/onednn/kernels/bf16.h"
#include "backends/onednn/kernels/empty_sum.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/primitives.h"
#include "src/ops/image_order.h"

namespace keel::onednn {
namespace {

bool is_empty(const Shape& shape) { return shape.elements() == 0; }

// Input 0 is a factor of all three.
bool is_narrow(const NodeContext& context) { return context.input(0).dtype == DType::kBF16; }

}  // namespace

Prepared prepare_conv2d(const NodeContext& context) {
  using In = ConvInput;
  const auto& attrs = context.attrs<ConvAttrs>();
  const ConvSpec spec{.x = image_sizes(context.input(In::kX).shape, attrs.channels_last),
                      .weight = context.input(In::kWeight).shape,
                      .y = image_sizes(context.output().shape, attrs.channels_last),
                      .stride = attrs.stride,
                      .padding = attrs.padding,
                      .channels_last = attrs.channels_last,
                      .bias = context.has(In::kBias),
                      .relu = attrs.activation == Activation::kRelu,
                      .narrow = is_narrow(context)};
  if (is_empty(spec.y)) return do_nothing();
  if (is_empty(spec.x)) {
    return fill_bias(In::kBias, spec.channels_last ? 1 : spec.y[2] * spec.y[3], spec.relu);
  }
  return prepare_product(context, spec, make_conv);
}

Prepared prepare_conv2d_backward_input(const NodeContext& context) {
  using In = ConvDxInput;
  const auto& attrs = context.attrs<ConvBackwardAttrs>();
  const ConvSpec spec{.x = image_sizes(attrs.shape, attrs.channels_last),
                      .weight = context.input(In::kWeight).shape,
                      .y = image_sizes(context.input(In::kDy).shape, attrs.channels_last),
                      .stride = attrs.stride,
                      .padding = attrs.padding,
                      .channels_last = attrs.channels_last,
                      .narrow = is_narrow(context)};
  if (is_empty(spec.x)) return do_nothing();
  return is_empty(spec.y) ? fill_zero() : prepare_product(context, spec, make_conv_backward_input);
}

Prepared prepare_conv2d_backward_weight(const NodeContext& context) {
  using In = ConvDweightInput;
  const auto& attrs = context.attrs<ConvBackwardAttrs>();
  const ConvSpec spec{.x = image_sizes(context.input(In::kX).shape, attrs.channels_last),
                      .weight = attrs.shape,
                      .y = image_sizes(context.input(In::kDy).shape, attrs.channels_last),
                      .stride = attrs.stride,
                      .padding = attrs.padding,
                      .channels_last = attrs.channels_last,
                      .narrow = is_narrow(context)};
  if (is_empty(spec.weight)) return do_nothing();
  return is_empty(spec.x) ? fill_zero() : prepare_product(context, spec, make_conv_backward_weight);
}

}  // namespace keel::onednn

// Ops that only move elements. reshape is a view and has no kernel.
#include "src/ops/layout.h"

#include <algorithm>

#include "backends/reference/kernels/kernels.h"
#include "backends/reference/kernels/walk.h"

namespace keel::reference {
namespace {

// Offset of the element at `place`, one number an axis.
std::int64_t offset_of(const std::vector<std::int64_t>& place, const Shape& shape) {
  const Strides strides = shape.strides();
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < place.size(); ++axis) offset += place[axis] * strides[axis];
  return offset;
}

// Part after part along the axis: each is written into its own window of y.
void concat(const Binding& b, std::size_t axis) {
  const Strides strides = b.outputs[0].type.shape.strides();
  std::int64_t start = 0;
  for (const TensorRef& part : b.inputs) {
    scatter(b.outputs[0], part, strides, start * strides[axis]);
    start += part.type.shape[int(axis)];
  }
}

void fill(const TensorRef& y, double value) {
  with_element_type(y.type.dtype, [&](auto element) {
    using T = decltype(element);
    std::fill_n(y.as<T>(), y.elements(), static_cast<T>(value));
  });
}

}  // namespace

// y axis i is x axis axes[i].
Prepared prepare_transpose(const NodeContext& context) {
  const Strides own = context.input(0).shape.strides();
  const auto& axes = context.attrs<TransposeAttrs>().axes;
  Strides strides{};
  for (std::size_t i = 0; i < axes.size(); ++i) strides[i] = own[std::size_t(axes[i])];
  return kernel_of([=](const Binding& b) { gather(b.outputs[0], b.inputs[0], strides); });
}

Prepared prepare_slice(const NodeContext& context) {
  const Shape& x = context.input(0).shape;
  const Strides strides = x.strides();
  const std::int64_t start = offset_of(context.attrs<SliceAttrs>().starts, x);
  return kernel_of([=](const Binding& b) { gather(b.outputs[0], b.inputs[0], strides, start); });
}

// Part after part, each of `elements` elements.
Prepared prepare_split(const NodeContext& context) {
  const Strides strides = context.output().shape.strides();
  const std::int64_t elements = context.output().shape.elements();
  return kernel_of([=](const Binding& b) {
    for (std::size_t i = 0; i < b.outputs.size(); ++i) {
      gather(b.outputs[i], b.inputs[0], strides, std::int64_t(i) * elements);
    }
  });
}

Prepared prepare_concat(const NodeContext& context) {
  const auto axis = std::size_t(context.attrs<ConcatAttrs>().axis);
  return kernel_of([=](const Binding& b) { concat(b, axis); });
}

Prepared prepare_pad(const NodeContext& context) {
  const auto& attrs = context.attrs<PadAttrs>();
  const Strides strides = context.output().shape.strides();
  const std::int64_t start = offset_of(attrs.before, context.output().shape);
  return kernel_of([=, value = attrs.value](const Binding& b) {
    fill(b.outputs[0], value);
    scatter(b.outputs[0], b.inputs[0], strides, start);
  });
}

}  // namespace keel::reference

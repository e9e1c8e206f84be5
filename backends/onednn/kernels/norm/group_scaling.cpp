// Group scaling: a group is a row.
#include "src/ops/norm/group_scaling.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/row_blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/group_scaling.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/scaled_groups-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// kRows groups from `row` on: y = x * rrms; rrms is saved. y stays in the caches even when it is
// large: the norm that it is made for reads it at once.
template <std::size_t kRows>
void forward_rows(const Binding& b, double eps, std::size_t row, std::size_t width) {
  const float* x = b.inputs[0].as<float>() + row * width;
  float* y = b.outputs[0].as<float>() + row * width;
  float* rrms = b.outputs[1].as<float>() + row;
  for (std::size_t k = 0; k < kRows; ++k) {
    prefetch_row(y + k * width, width);
    rrms[k] = scale_of_group(x + k * width, width, eps);
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width, y += width) {
    prefetch_row(x + kRows * width, width);
    for_lanes(width, [=, factor = splat(rrms[k])](auto part, std::size_t i)
                         KEEL_LOOP_BODY { part.store(hn::Mul(part.load(x + i), factor), y + i); });
  }
}

void forward(const Binding& b, double eps, const RowRange& range) {
  for_row_groups(range, [&](auto rows, std::size_t row)
                            HWY_ATTR { forward_rows<rows()>(b, eps, row, range.width); });
}

void backward(const Binding& b, const RowRange& range) {
  scale_groups_backward({b.inputs[0].as<float>(),
                         b.inputs[1].as<float>(),
                         {b.inputs[2].as<float>()},
                         ResultRows(b.outputs[0], range.width)},
                        range);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_group_scaling(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(scaled_groups(context.input(0).shape, attrs.groups));
  return kernel_of([=](const Binding& b) {
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(b, attrs.eps, range);
    });
  });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(scaled_groups(context.input(0).shape, attrs.groups));
  return kernel_of([=](const Binding& b) {
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, range);
    });
  });
}

}  // namespace keel::onednn
#endif

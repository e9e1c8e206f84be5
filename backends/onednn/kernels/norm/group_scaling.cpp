// Group scaling takes a group as a row, in passes over data that stays in L1.
#include "src/ops/norm/group_scaling.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/row_blocks.h"

namespace keel::onednn {
namespace {

using In = GroupScalingInput;
using Out = GroupScalingOutput;
using BackIn = GroupScalingBackwardInput;

}  // namespace
}  // namespace keel::onednn

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/group_scaling.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/row_rms-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Writes y = x * rstd and saves rstd. y stays in the caches even when it is large, because the norm
// that it is made for reads it at once.
void forward(const Binding& b, double eps, const RowRange& range) {
  const auto finish = [](std::size_t) {
    return [](Floats xhat, auto, std::size_t) KEEL_LOOP_BODY { return xhat; };
  };
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_scaled(ScaledRows<T>{b.inputs[In::kX].as<T>(), b.outputs[Out::kRstd].as<float>(),
                               ResultRows::cached(b), range},
                 inverse_rms(range.width, eps), finish);
  });
}

// Writes dx = rstd * (dy - xhat * mean(dy * xhat)) of kRows groups from `row` on.
template <class T, std::size_t kRows>
void backward_rows(const Binding& b, std::size_t row, std::size_t width) {
  const T* x = b.inputs[BackIn::kX].as<T>() + row * width;
  const T* dy = b.inputs[BackIn::kDy].as<T>() + row * width;
  const float* rstd = b.inputs[BackIn::kRstd].as<float>() + row;
  const ResultRows dx(b, width);
  float slopes[kRows];
  for (std::size_t k = 0; k < kRows; ++k) {
    dx.prefetch((row + k) * width, width);
    const double products = row_products(x + k * width, dy + k * width, width, rstd[k], {});
    slopes[k] = float(products / double(width));
  }
  for (std::size_t k = 0; k < kRows; ++k, x += width, dy += width) {
    const ScaledGradient gradient{splat(rstd[k]), splat(slopes[k]), splat(rstd[k])};
    write_row(dx, (row + k) * width, width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return gradient.dx(part.load(dy + i), gradient.xhat(part.load(x + i)));
    });
  }
}

void backward(const Binding& b, const RowRange& range) {
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    for_row_groups(range, [&](auto rows, std::size_t row)
                              HWY_ATTR { backward_rows<T, rows()>(b, row, range.width); });
  });
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
      independent_row_blocks(scaled_groups(context.input(In::kX).shape, attrs.groups));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(forward)(b, attrs.eps, range);
  });
}

Prepared prepare_group_scaling_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupScalingAttrs>();
  const RowBlocks blocks =
      independent_row_blocks(scaled_groups(context.input(BackIn::kX).shape, attrs.groups));
  return kernel_of_rows(blocks, [=](const Binding& b, const RowRange& range) {
    HWY_DYNAMIC_DISPATCH(backward)(b, range);
  });
}

}  // namespace keel::onednn
#endif

// Dynamic tanh.
#include "src/ops/norm/dyt.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/curve_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/dyt.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/curve-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

struct Tanh {
  static HWY_INLINE Floats value(Floats u) { return tanh(u); }
  static HWY_INLINE WithSlope with_slope(Floats u) { return tanh_and_slope(u); }
};

void forward(const CurveForward& t, const RowRange& range) { curve_forward<Tanh>(t, range); }
void backward(const CurveBackward& t, const CurvePlan& plan, const GradientTile& tile) {
  curve_backward<Tanh>(t, plan, tile);
}
void add_up(const CurveBackward& t, const CurvePlan& plan) { add_curve_sums(t, plan); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);

Prepared prepare_dyt(const NodeContext& context) {
  using In = DytInput;
  const RowBlocks blocks = independent_row_blocks(
      row_sizes(context.input(In::kX).shape, context.attrs<DytAttrs>().axes));
  return kernel_of([=](const Binding& b) {
    const CurveForward tensors{.binding = b,
                               .x = b.inputs[In::kX],
                               .gain = b.inputs[In::kGain],
                               .bias = b.inputs[In::kBias],
                               .alpha = b.inputs[In::kAlpha],
                               .shift = {}};
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(tensors, range);
    });
  });
}

Prepared prepare_dyt_backward(const NodeContext& context) {
  using In = DytBackwardInput;
  using Out = DytGradient;
  const CurvePlan plan(
      row_sizes(context.input(In::kX).shape, context.attrs<DytBackwardAttrs>().axes));
  const auto run = [=](const Binding& b) {
    const CurveBackward tensors{.binding = b,
                                .x = b.inputs[In::kX],
                                .gain = b.inputs[In::kGain],
                                .alpha = b.inputs[In::kAlpha],
                                .shift = {},
                                .dy = b.inputs[In::kDy],
                                .dgain = b.outputs[Out::kDgain],
                                .dbias = b.outputs[Out::kDbias],
                                .dalpha = b.outputs[Out::kDalpha],
                                .dshift = {}};
    plan.run([&](const GradientTile& tile) {
      HWY_DYNAMIC_DISPATCH(backward)(tensors, plan, tile);
    });
    HWY_DYNAMIC_DISPATCH(add_up)(tensors, plan);
  };
  return kernel_of(run, plan.bytes());
}

}  // namespace keel::onednn
#endif

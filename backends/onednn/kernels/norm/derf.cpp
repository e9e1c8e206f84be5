// Dynamic erf.
#include "src/ops/norm/derf.h"

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/curve_plan.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/derf.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/curve-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

struct Erf {
  static HWY_INLINE Floats value(Floats u) { return erf(u); }
  static HWY_INLINE WithSlope with_slope(Floats u) { return erf_and_slope(u); }
};

void forward(const CurveForward& t, const RowRange& range) { curve_forward<Erf>(t, range); }
void backward(const CurveBackward& t, const CurvePlan& plan, const GradientTile& tile) {
  curve_backward<Erf>(t, plan, tile);
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

Prepared prepare_derf(const NodeContext& context) {
  using In = DerfInput;
  const RowBlocks blocks = independent_row_blocks(
      row_sizes(context.input(In::kX).shape, context.attrs<DerfAttrs>().axes));
  return kernel_of([=](const Binding& b) {
    const CurveForward tensors{.binding = b,
                               .x = b.inputs[In::kX],
                               .gain = b.inputs[In::kGain],
                               .bias = b.inputs[In::kBias],
                               .alpha = b.inputs[In::kAlpha],
                               .shift = b.inputs[In::kShift]};
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(tensors, range);
    });
  });
}

Prepared prepare_derf_backward(const NodeContext& context) {
  using In = DerfBackwardInput;
  using Out = DerfGradient;
  const CurvePlan plan(
      row_sizes(context.input(In::kX).shape, context.attrs<DerfBackwardAttrs>().axes));
  const auto run = [=](const Binding& b) {
    const CurveBackward tensors{.binding = b,
                                .x = b.inputs[In::kX],
                                .gain = b.inputs[In::kGain],
                                .alpha = b.inputs[In::kAlpha],
                                .shift = b.inputs[In::kShift],
                                .dy = b.inputs[In::kDy],
                                .dgain = b.outputs[Out::kDgain],
                                .dbias = b.outputs[Out::kDbias],
                                .dalpha = b.outputs[Out::kDalpha],
                                .dshift = b.outputs[Out::kDshift]};
    plan.run([&](const GradientTile& tile) {
      HWY_DYNAMIC_DISPATCH(backward)(tensors, plan, tile);
    });
    HWY_DYNAMIC_DISPATCH(add_up)(tensors, plan);
  };
  return kernel_of(run, plan.bytes());
}

}  // namespace keel::onednn
#endif

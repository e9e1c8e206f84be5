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
  return prepare_curve<DytAttrs, DytInput>(context, [](auto&... of) {
    HWY_DYNAMIC_DISPATCH(forward)(of...);
  });
}

Prepared prepare_dyt_backward(const NodeContext& context) {
  const auto run = [](auto&... of) { HWY_DYNAMIC_DISPATCH(backward)(of...); };
  const auto sum = [](auto&... of) { HWY_DYNAMIC_DISPATCH(add_up)(of...); };
  return prepare_curve_backward<DytBackwardAttrs, DytBackwardInput, DytGradient>(context, run, sum);
}

}  // namespace keel::onednn
#endif

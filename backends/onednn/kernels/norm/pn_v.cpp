// PN-V forms sums of squares over tiles of the tensor and then passes over it once more.
#include "src/ops/norm/pn_v.h"

#include "backends/onednn/kernels/kernels.h"

namespace keel::onednn {
namespace {

using In = PnVInput;
using Out = PnVOutput;
using BackIn = PnVBackwardInput;
using BackOut = PnVGradient;

}  // namespace
}  // namespace keel::onednn

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/pn_v.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/uncentred_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Computes rstd and psi2' of a panel from the sums of squares of all blocks.
void forward_statistics(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs,
                        const Tile& tile) {
  const auto count =
      double(plan.counts(b.inputs[In::kMask].as<std::uint8_t>(), b.inputs[In::kSquares]).kept);
  const bool uses_batch = attrs.training && count > 0;
  const WideDoubles eps = WideDoubles::all(attrs.eps);
  const WideDoubles share = WideDoubles::all(1 / count);
  const WideDoubles keep = WideDoubles::all(attrs.keep), rest = WideDoubles::all(1 - attrs.keep);
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const Floats running = part.load(b.inputs[In::kPsi2].as<float>() + c);
    WideDoubles psi2 = WideDoubles::of(running);
    Floats next = running;
    if (uses_batch) {
      const WideDoubles batch = sum_of_blocks(plan, b.workspace, 0, c) * share;
      next = (psi2 * keep + batch * rest).floats();
      psi2 = batch;
    }
    part.store(reciprocal_sqrt(psi2 + eps), b.outputs[Out::kRstd].as<float>() + c);
    if (b.outputs[Out::kNextPsi2]) part.store(next, b.outputs[Out::kNextPsi2].as<float>() + c);
  });
}

void forward(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs) {
  run_uncentred<In, Out>(b, plan, attrs.training, b.inputs[In::kGain].as<float>(),
                         [&](const Tile& tile)
                             HWY_ATTR { forward_statistics(b, plan, attrs, tile); });
}

// Computes dgain, dbias and the slope of dx, 0 in evaluation, from the sums of all blocks.
void backward_statistics(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs,
                         const Tile& tile) {
  const auto count =
      double(plan.counts(b.inputs[BackIn::kMask].as<std::uint8_t>(), b.inputs[BackIn::kSums]).kept);
  const WideDoubles share = WideDoubles::all(attrs.training && count > 0 ? 1 / count : 0);
  const float* gain = b.inputs[BackIn::kGain].as<float>();
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles dbias = sum_of_blocks(plan, b.workspace, 0, c);
    const WideDoubles dgain = sum_of_blocks(plan, b.workspace, 1, c);
    const Floats mean = (dgain * share).floats();
    part.store(gain ? hn::Mul(mean, part.load(gain + c)) : mean, plan.constant(b.workspace, 0) + c);
    store_parameter_gradients<BackOut>(part, b, c, dgain, dbias);
  });
}

void backward(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs) {
  run_uncentred_backward<BackIn>(
      b, plan, plan.constant(b.workspace, 0), b.inputs[BackIn::kGain].as<float>(),
      [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, attrs, tile); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_pn_v(const NodeContext& context) {
  const auto attrs = context.attrs<PnVAttrs>();
  const ColumnPlan plan{column_blocks(column_sizes(context.input(In::kX).shape), 1, 1), 1, 0,
                        context.has(In::kSquares)};
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(forward);
        run(b, plan, attrs);
      },
      plan.bytes());
}

Prepared prepare_pn_v_backward(const NodeContext& context) {
  const auto attrs = context.attrs<PnVBackwardAttrs>();
  const ColumnPlan plan{column_blocks(column_sizes(context.input(BackIn::kX).shape), 2, 2), 2, 1,
                        context.has(BackIn::kSums)};
  return kernel_of(
      [=](const Binding& b) {
        const auto run = HWY_DYNAMIC_DISPATCH(backward);
        run(b, plan, attrs);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

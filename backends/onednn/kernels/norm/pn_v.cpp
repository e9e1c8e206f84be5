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

#include "backends/onednn/simd/uncentred_columns-inl.h"

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

template <class T>
void forward_of(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs) {
  const RowMask mask = b.inputs[In::kMask].as<std::uint8_t>();
  const UncentredForward<T> in{b.inputs[In::kX].as<T>(), b.outputs[Out::kRstd].as<float>(),
                               b.inputs[In::kGain].as<float>(), b.inputs[In::kBias].as<float>(),
                               ResultRows(b, plan.blocks.run_length())};
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        if (!attrs.training) return;
        if (plan.is_given) {
          return take_squares(plan, {b.workspace, block, 0}, b.inputs[In::kSquares], tile);
        }
        tile_squares(tile, in.x, mask, plan.sum(b.workspace, block, 0) + tile.first);
      },
      [&](const Tile& tile) HWY_ATTR { forward_statistics(b, plan, attrs, tile); },
      [&](const Tile& tile) HWY_ATTR { write_forward(tile, in, mask); });
}

void forward(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR { forward_of<T>(b, plan, attrs); });
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
    if (b.outputs[BackOut::kDgain]) {
      part.store(dgain.floats(), b.outputs[BackOut::kDgain].as<float>() + c);
    }
    if (b.outputs[BackOut::kDbias]) {
      part.store(dbias.floats(), b.outputs[BackOut::kDbias].as<float>() + c);
    }
  });
}

template <class T>
void backward_of(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs) {
  const RowMask mask = b.inputs[BackIn::kMask].as<std::uint8_t>();
  const float* rstd = b.inputs[BackIn::kRstd].as<float>();
  const UncentredGradient<T> in{b.inputs[BackIn::kX].as<T>(), b.inputs[BackIn::kDy].as<T>(), rstd};
  const UncentredBackward<T> write{in, rstd, plan.constant(b.workspace, 0),
                                   b.inputs[BackIn::kGain].as<float>(),
                                   ResultRows(b, plan.blocks.run_length())};
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        if (plan.is_given) {
          return take_gradients(plan, {b.workspace, block, 0}, b.inputs[BackIn::kSums], tile);
        }
        tile_gradient_sums(tile, in, mask,
                           {plan.sum(b.workspace, block, 0) + tile.first,
                            plan.sum(b.workspace, block, 1) + tile.first});
      },
      [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, attrs, tile); },
      [&](const Tile& tile) HWY_ATTR { write_backward(tile, write, mask); });
}

void backward(const Binding& b, const ColumnPlan& plan, const PnVAttrs& attrs) {
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR { backward_of<T>(b, plan, attrs); });
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

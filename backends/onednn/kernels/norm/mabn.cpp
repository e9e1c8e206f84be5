// Moving average batch norm is made of the parts of un-centred norms: the ring buffers change only
// the statistics of a channel.
#include "src/ops/norm/mabn.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_MABN_PLAN  // this file is compiled once per instruction set
#define KEEL_MABN_PLAN
namespace keel::onednn {
namespace {

using In = MabnInput;
using Out = MabnOutput;
using BackIn = MabnBackwardInput;
using BackOut = MabnGradient;

// The constants of a channel: gain * r, and G.
enum Constants : std::size_t { kGain, kSlope };

struct MabnPlan : ColumnPlan {
  MabnAttrs attrs;
};

// The forward and the backward have their mask in the same place.
static_assert(int(In::kMask) == int(BackIn::kMask));
RowMask mask_of(const Binding& b) { return b.inputs[In::kMask].as<std::uint8_t>(); }

// K of the forward, and of the backward.
double forward_count(const Binding& b, const MabnPlan& plan) {
  return double(plan.counts(mask_of(b), b.inputs[In::kSquares]).kept);
}
double backward_count(const Binding& b, const MabnPlan& plan) {
  return double(plan.counts(mask_of(b), b.inputs[BackIn::kSums]).kept);
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/mabn.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/uncentred_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// The next state of a ring buffer (m, channels), which has all rows but that of this step already.
struct Ring {
  const MabnPlan& plan;
  float* data;
  MabnPhase phase;

  // Puts `value` into the row of this step, at channel c, and returns what stands for the buffer:
  // its mean over the rows, or just the value. Four rows are averaged in float, where no mean of
  // squares overflows: that takes a third of the time.
  template <class Part>
  HWY_INLINE WideDoubles push(Part part, std::size_t c, const WideDoubles& value) const {
    const auto m = std::size_t(plan.attrs.m), channels = std::size_t(plan.blocks.sizes.channels);
    part.store(value.floats(), data + std::size_t(phase.row) * channels + c);
    if (!phase.averages) return value;
    const auto at = [&](std::size_t row)
                        KEEL_LOOP_BODY { return part.load(data + row * channels + c); };
    const auto quarter = [&](std::size_t row)
                             KEEL_LOOP_BODY { return hn::Mul(at(row), splat(0.25f)); };
    WideDoubles sum = WideDoubles::zero();
    std::size_t row = 0;
    for (; row + 4 <= m; row += 4) {
      const Floats mean = hn::Add(hn::Add(quarter(row), quarter(row + 1)),
                                  hn::Add(quarter(row + 2), quarter(row + 3)));
      sum = sum + WideDoubles::of(mean);
    }
    sum = sum * WideDoubles::all(4);
    for (; row < m; ++row) sum = sum + WideDoubles::of(at(row));
    return sum * WideDoubles::all(1 / static_cast<double>(m));
  }
};

void forward_statistics(const Binding& b, const MabnPlan& plan, const Tile& tile) {
  const MabnAttrs& attrs = plan.attrs;
  const MabnPhase phase = mabn_phase(attrs, *b.inputs[In::kStep].as<std::int32_t>());
  const Ring x2{plan, b.outputs[Out::kNextX2].as<float>(), phase};
  const double count = forward_count(b, plan);
  const bool is_step = attrs.training && count > 0;  // a training step needs a row that counts
  const WideDoubles share = WideDoubles::all(1 / count);
  const WideDoubles eps = WideDoubles::all(attrs.eps);
  const WideDoubles keep = WideDoubles::all(attrs.keep), rest = WideDoubles::all(1 - attrs.keep);
  const Floats most = splat(float(attrs.clip)), least = splat(float(1 / attrs.clip));
  const float* gain = b.inputs[In::kGain].as<float>();
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles running = WideDoubles::of(part.load(b.inputs[In::kV].as<float>() + c));
    WideDoubles v = running, next = running;
    if (is_step) {
      v = x2.push(part, c, sum_of_blocks(plan, b.workspace, 0, c) * share);
      next = running * keep + v * rest;
    }
    const Floats rstd = reciprocal_sqrt(v + eps);
    Floats r = splat(1);
    if (is_step && phase.clips) {
      const Floats deviation = ((v + eps) * WideDoubles::of(rstd)).floats();
      r = hn::Mul(deviation, reciprocal_sqrt(running + eps));
      r = hn::Min(hn::Max(r, least), most);
    }
    if (b.outputs[Out::kNextV]) part.store(next.floats(), b.outputs[Out::kNextV].as<float>() + c);
    part.store(rstd, b.outputs[Out::kRstd].as<float>() + c);
    part.store(r, b.outputs[Out::kR].as<float>() + c);
    part.store(gain ? hn::Mul(r, part.load(gain + c)) : r, plan.constant(b.workspace, kGain) + c);
  });
}

void forward(const Binding& b, const MabnPlan& plan) {
  run_uncentred<In, Out>(b, plan, plan.attrs.training, plan.constant(b.workspace, kGain),
                         [&](const Tile& tile) HWY_ATTR { forward_statistics(b, plan, tile); });
}

void backward_statistics(const Binding& b, const MabnPlan& plan, const Tile& tile) {
  const Ring gz{plan, b.outputs[BackOut::kNextGz].as<float>(),
                mabn_phase(plan.attrs, *b.inputs[BackIn::kStep].as<std::int32_t>())};
  const double count = backward_count(b, plan);
  const bool is_step = plan.attrs.training && count > 0;
  const WideDoubles share = WideDoubles::all(1 / count);
  const float* gains = b.inputs[BackIn::kGain].as<float>();
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles r = WideDoubles::of(part.load(b.inputs[BackIn::kR].as<float>() + c));
    const WideDoubles gain = gains ? r * WideDoubles::of(part.load(gains + c)) : r;
    const WideDoubles products = sum_of_blocks(plan, b.workspace, 1, c);
    WideDoubles slope = WideDoubles::zero();
    if (is_step) slope = gz.push(part, c, products * gain * share);
    part.store(gain.floats(), plan.constant(b.workspace, kGain) + c);
    part.store(slope.floats(), plan.constant(b.workspace, kSlope) + c);
    store_parameter_gradients<BackOut>(part, b, c, products * r,
                                       sum_of_blocks(plan, b.workspace, 0, c));
  });
}

void backward(const Binding& b, const MabnPlan& plan) {
  run_uncentred_backward<BackIn>(
      b, plan, plan.constant(b.workspace, kSlope), plan.constant(b.workspace, kGain),
      [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, tile); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Prepared prepare_mabn(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const MabnPlan plan{{column_blocks(sizes, 1, 1), 1, 1, context.has(In::kSquares)},
                      context.attrs<MabnAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        if (plan.attrs.training) {
          carry_on(b.inputs[In::kX2], b.outputs[Out::kNextX2]);
          *b.outputs[Out::kNextStep].as<std::int32_t>() =
              *b.inputs[In::kStep].as<std::int32_t>() + (forward_count(b, plan) > 0 ? 1 : 0);
        }
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_mabn_backward(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  const MabnPlan plan{{column_blocks(sizes, 2, 2), 2, 2, context.has(BackIn::kSums)},
                      context.attrs<MabnBackwardAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        if (plan.attrs.training) carry_on(b.inputs[BackIn::kGz], b.outputs[BackOut::kNextGz]);
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

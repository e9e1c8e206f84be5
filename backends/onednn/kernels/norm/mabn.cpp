// Moving average batch norm from the parts of un-centred norms: what the ring buffers hold changes
// the statistics of a channel only.
#include "src/ops/norm/mabn.h"

#include <cstring>

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_MABN_PLAN  // this file is compiled once per instruction set
#define KEEL_MABN_PLAN
namespace keel::onednn {
namespace {

enum Constants : std::size_t { kGain, kSlope };  // gain * r, and G

struct MabnPlan : ColumnPlan {
  MabnAttrs attrs;
};

RowMask mask_of(const Binding& b) { return b.inputs[7].as<std::uint8_t>(); }

// Whether this run is a training step: there may be no row that counts.
bool trains(const Binding& b, const MabnPlan& plan) {
  return plan.attrs.training && plan.count(mask_of(b)) > 0;
}

void copy_state(const TensorRef& from, const TensorRef& to) {
  std::memcpy(to.data, from.data, std::size_t(from.type.bytes()));
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/mabn.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Puts `value` into a ring buffer's row of this step, at channel c, and returns what stands for the
// buffer: its mean over the rows, or the value alone. `ring` is the next state.
template <class Part>
HWY_INLINE WideDoubles push(Part part, const TensorRef& ring, std::size_t c, const MabnPhase& phase,
                            const WideDoubles& value) {
  const auto m = static_cast<std::size_t>(ring.type.shape[0]);
  const auto channels = static_cast<std::size_t>(ring.type.shape[1]);
  float* first = ring.as<float>() + c;
  part.store(value.floats(), first + static_cast<std::size_t>(phase.row) * channels);
  if (!phase.averages) return value;
  WideDoubles sum = WideDoubles::zero();
  for (std::size_t row = 0; row < m; ++row) {
    sum = sum + WideDoubles::of(part.load(first + row * channels));
  }
  return sum * WideDoubles::all(1 / static_cast<double>(m));
}

// sqrt(V + eps) / sqrt(v + eps) within its window.
HWY_INLINE WideDoubles clipped_ratio(const WideDoubles& batch, const WideDoubles& running,
                                     const MabnAttrs& attrs) {
  const WideDoubles eps = WideDoubles::all(attrs.eps);
  const WideDoubles ratio = ((batch + eps) / (running + eps)).sqrt();
  const auto clip = [&](Doubles half) HWY_ATTR {
    return hn::Min(hn::Max(half, hn::Set(D(), 1 / attrs.clip)), hn::Set(D(), attrs.clip));
  };
  return {clip(ratio.low), clip(ratio.high)};
}

void forward_statistics(const Binding& b, const MabnPlan& plan, const Slab& slab) {
  const MabnAttrs& attrs = plan.attrs;
  const MabnPhase phase = mabn_phase(attrs, *b.inputs[6].as<std::int32_t>());
  const bool is_step = trains(b, plan);
  const WideDoubles share = WideDoubles::all(1 / double(plan.count(mask_of(b))));
  const WideDoubles one = WideDoubles::all(1), eps = WideDoubles::all(attrs.eps);
  const WideDoubles keep = WideDoubles::all(attrs.keep), rest = WideDoubles::all(1 - attrs.keep);
  const float* gain = b.inputs[1].as<float>();
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const WideDoubles running = WideDoubles::of(part.load(b.inputs[5].as<float>() + c));
    WideDoubles v = running, r = one;
    if (is_step) {
      v = push(part, b.outputs[3], c, phase, sum_of_blocks(plan, b.workspace, 0, c) * share);
      if (phase.clips) r = clipped_ratio(v, running, attrs);
      part.store((running * keep + v * rest).floats(), b.outputs[4].as<float>() + c);
    }
    part.store(reciprocal_sqrt(v + eps), b.outputs[1].as<float>() + c);
    part.store(r.floats(), b.outputs[2].as<float>() + c);
    part.store((gain ? r * WideDoubles::of(part.load(gain + c)) : r).floats(),
               plan.constant(b.workspace, kGain) + c);
  });
}

void forward(const Binding& b, const MabnPlan& plan) {
  const float* x = b.inputs[0].as<float>();
  const UncentredForward in{x, b.outputs[1].as<float>(), plan.constant(b.workspace, kGain),
                            b.inputs[2].as<float>(), b.outputs[0]};
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Slab& slab) HWY_ATTR {
        if (!plan.attrs.training) return;
        slab_squares(slab, x, mask_of(b), plan.sum(b.workspace, block, 0) + slab.first);
      },
      [&](const Slab& slab) HWY_ATTR { forward_statistics(b, plan, slab); },
      [&](const Slab& slab) HWY_ATTR { write_forward(slab, in, mask_of(b)); });
}

void backward_statistics(const Binding& b, const MabnPlan& plan, const Slab& slab) {
  const MabnPhase phase = mabn_phase(plan.attrs, *b.inputs[5].as<std::int32_t>());
  const bool is_step = trains(b, plan);
  const WideDoubles share = WideDoubles::all(1 / double(plan.count(mask_of(b))));
  const float* gains = b.inputs[1].as<float>();
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const WideDoubles r = WideDoubles::of(part.load(b.inputs[3].as<float>() + c));
    const WideDoubles gain = gains ? r * WideDoubles::of(part.load(gains + c)) : r;
    const WideDoubles products = sum_of_blocks(plan, b.workspace, 1, c);
    WideDoubles slope = WideDoubles::zero();
    if (is_step) slope = push(part, b.outputs[3], c, phase, products * gain * share);
    part.store(gain.floats(), plan.constant(b.workspace, kGain) + c);
    part.store(slope.floats(), plan.constant(b.workspace, kSlope) + c);
    if (b.outputs[1]) part.store((products * r).floats(), b.outputs[1].as<float>() + c);
    if (b.outputs[2]) {
      part.store(sum_of_blocks(plan, b.workspace, 0, c).floats(), b.outputs[2].as<float>() + c);
    }
  });
}

void backward(const Binding& b, const MabnPlan& plan) {
  const float* rstd = b.inputs[2].as<float>();
  const UncentredGradient in{b.inputs[0].as<float>(), b.inputs[6].as<float>(), rstd};
  const UncentredBackward write{in, rstd, plan.constant(b.workspace, kSlope),
                                plan.constant(b.workspace, kGain), b.outputs[0]};
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Slab& slab) HWY_ATTR {
        slab_gradient_sums(slab, in, mask_of(b),
                           {plan.sum(b.workspace, block, 0) + slab.first,
                            plan.sum(b.workspace, block, 1) + slab.first});
      },
      [&](const Slab& slab) HWY_ATTR { backward_statistics(b, plan, slab); },
      [&](const Slab& slab) HWY_ATTR { write_backward(slab, write, mask_of(b)); });
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
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  const MabnPlan plan{{column_blocks(sizes, 1, 1), 1, 1}, context.attrs<MabnAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        if (plan.attrs.training) {
          copy_state(b.inputs[3], b.outputs[3]);
          copy_state(b.inputs[5], b.outputs[4]);
          *b.outputs[5].as<std::int32_t>() =
              *b.inputs[6].as<std::int32_t>() + (trains(b, plan) ? 1 : 0);
        }
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_mabn_backward(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(0).shape);
  const MabnPlan plan{{column_blocks(sizes, 2, 2), 2, 2}, context.attrs<MabnAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        if (plan.attrs.training) copy_state(b.inputs[4], b.outputs[3]);
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

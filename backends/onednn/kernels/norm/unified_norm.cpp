// Unified normalization is made of the parts of un-centred norms. Where it filters outliers, no
// channel has its statistics before all have been asked.
#include "src/ops/norm/unified_norm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_UNIFIED_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_UNIFIED_NORM_PLAN
namespace keel::onednn {
namespace {

using In = UnifiedNormInput;
using Out = UnifiedNormOutput;
using BackIn = UnifiedNormBackwardInput;
using BackOut = UnifiedNormGradient;

// The constants of a channel in the backward: gain * ratio, and the factor of z in dx.
enum Constants : std::size_t { kGain, kSlope };

struct UnifiedPlan : ColumnPlan {
  UnifiedNormAttrs attrs;
};

// The values that all channels share in the forward of a step.
struct Step {
  MabnPhase phase;
  double count;             // of the elements of a channel that take part
  bool trains;              // whether there is one
  bool filters;             // whether the batch may be an outlier
  bool is_outlier = false;  // whether it is one, which its sums say

  bool skips(const UnifiedNormAttrs& attrs) const { return is_outlier || (trains && attrs.m == 1); }
};

Step step_of(const Binding& b, const UnifiedPlan& plan) {
  const UnifiedNormAttrs& attrs = plan.attrs;
  const MabnPhase phase = attrs.phase(*b.inputs[In::kStep].as<std::int32_t>());
  const RowMask mask = b.inputs[In::kMask].as<std::uint8_t>();
  const auto count = double(plan.counts(mask, b.inputs[In::kSquares]).kept);
  const bool trains = attrs.training && count > 0;
  return {phase, count, trains, trains && attrs.filter && phase.averages && attrs.m > 1};
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/unified_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/uncentred_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// Some channels of a ring buffer (m, channels), in which `value` stands for the row of this step.
template <class Part>
struct Window {
  Part part;
  const float* data;  // of the first of these channels
  std::size_t channels, m, row;
  Floats value;

  WideDoubles at(std::size_t i) const {
    return WideDoubles::of(i == row ? value : part.load(data + i * channels));
  }
  WideDoubles mean() const {
    WideDoubles sum = at(0);
    for (std::size_t i = 1; i < m; ++i) sum = sum + at(i);
    return sum * WideDoubles::all(1 / double(m));
  }
  // That of `rows` rows, a power of two, by square roots of neighbours.
  WideDoubles geometric_mean(std::size_t first, std::size_t rows) const {
    if (rows == 1) return at(first);
    const std::size_t half = rows / 2;
    return (geometric_mean(first, half) * geometric_mean(first + half, half)).sqrt();
  }
};

template <class Part>
Window<Part> window_of(Part part, const float* data, const UnifiedPlan& plan,
                       const MabnPhase& phase, Floats value) {
  const auto channels = std::size_t(plan.blocks.sizes.channels);
  return {part, data, channels, std::size_t(plan.attrs.m), std::size_t(phase.row), value};
}

// mean(x^2) of channels c, c + 1, ...
WideDoubles mean_square(const Binding& b, const UnifiedPlan& plan, const Step& step,
                        std::size_t c) {
  return sum_of_blocks(plan, b.workspace, 0, c) * WideDoubles::all(1 / step.count);
}

// The unbiased variance of the roots of n numbers.
double variance_of_roots(const float* squares, std::size_t n) {
  EightSums sum, deviations;
  for_lanes(n, [&](auto part, std::size_t i)
                   KEEL_LOOP_BODY { sum.add(WideDoubles::of(part.load(squares + i)).sqrt()); });
  const WideDoubles mean = WideDoubles::all(sum.total() / double(n));
  for_lanes(n, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const WideDoubles exists = WideDoubles::of(part.only(splat(1)));
    const WideDoubles d = (WideDoubles::of(part.load(squares + i)).sqrt() - mean) * exists;
    deviations.add(d * d);
  });
  return deviations.total() / double(n - 1);
}

// Whether the window has too large a gap between its arithmetic and its geometric mean, in any
// channel. A gap that is NaN is none.
bool is_outlier(const Binding& b, const UnifiedPlan& plan, const Step& step) {
  const auto channels = std::size_t(plan.blocks.sizes.channels);
  const float* ring = b.inputs[In::kX2].as<float>();
  const auto m = std::size_t(plan.attrs.m);
  const Floats bound = splat(float(double(m) * variance_of_roots(ring, m * channels)));
  bool found = false;
  for_lanes(channels, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
    const Floats batch = mean_square(b, plan, step, c).floats();
    const auto window = window_of(part, ring + c, plan, step.phase, batch);
    const Floats gap = part.only((window.mean() - window.geometric_mean(0, window.m)).floats());
    found = found || !hn::AllFalse(F(), hn::Gt(gap, bound));
  });
  return found;
}

void forward_statistics(const Binding& b, const UnifiedPlan& plan, const Step& step,
                        const Tile& tile) {
  const UnifiedNormAttrs& attrs = plan.attrs;
  float* ring = b.outputs[Out::kNextX2].as<float>();
  const bool skips = step.skips(attrs);
  const WideDoubles eps = WideDoubles::all(attrs.eps);
  const WideDoubles keep = WideDoubles::all(attrs.keep), rest = WideDoubles::all(1 - attrs.keep);
  const Floats most = splat(float(attrs.clip)), least = splat(float(1 / attrs.clip));
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const Floats former = part.load(b.inputs[In::kV].as<float>() + c);
    const WideDoubles running = WideDoubles::of(former);
    WideDoubles v = running, next = running;
    if (step.trains) {
      v = mean_square(b, plan, step, c);
      const auto window = window_of(part, ring + c, plan, step.phase, v.floats());
      if (step.phase.averages && !skips) v = window.geometric_mean(0, window.m);
      part.store(step.is_outlier ? former : window.value, ring + window.row * window.channels + c);
      next = running * keep + v * rest;
    }
    const Floats rstd = reciprocal_sqrt(v + eps);
    Floats ratio = splat(1);
    if (step.trains && step.phase.clips && !skips) {
      const Floats deviation = ((v + eps) * WideDoubles::of(rstd)).floats();
      ratio = hn::Mul(deviation, reciprocal_sqrt(running + eps));
      ratio = hn::Min(hn::Max(ratio, least), most);
    }
    if (b.outputs[Out::kNextV]) part.store(next.floats(), b.outputs[Out::kNextV].as<float>() + c);
    part.store(rstd, b.outputs[Out::kRstd].as<float>() + c);
    part.store(ratio, b.outputs[Out::kRatio].as<float>() + c);
  });
}

// Runs the forward of a step that may be an outlier.
void forward_filtered(const Binding& b, const UnifiedPlan& plan, Step& step) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    const UncentredForwardPasses<In, Out, T> passes{b, plan, true, b.inputs[In::kGain].as<float>()};
    plan.blocks.run([&](std::size_t block, const Tile& tile) HWY_ATTR { passes.sum(block, tile); });
    step.is_outlier = is_outlier(b, plan, step);
    plan.blocks.run_channels([&](const Tile& tile)
                                 HWY_ATTR { forward_statistics(b, plan, step, tile); });
    plan.blocks.run_backwards([&](std::size_t, const Tile& tile) HWY_ATTR { passes.write(tile); });
  });
}

void forward(const Binding& b, const UnifiedPlan& plan) {
  Step step = step_of(b, plan);
  if (step.filters) {
    forward_filtered(b, plan, step);
  } else {
    run_uncentred<In, Out>(b, plan, plan.attrs.training, b.inputs[In::kGain].as<float>(),
                           [&](const Tile& tile)
                               HWY_ATTR { forward_statistics(b, plan, step, tile); });
  }
  *b.outputs[Out::kSkips].as<float>() = step.skips(plan.attrs) ? 1 : 0;
  if (!plan.attrs.training) return;
  *b.outputs[Out::kNextStep].as<std::int32_t>() =
      *b.inputs[In::kStep].as<std::int32_t>() + (step.trains ? 1 : 0);
}

void backward_statistics(const Binding& b, const UnifiedPlan& plan, const Tile& tile) {
  const UnifiedNormAttrs& attrs = plan.attrs;
  const MabnPhase phase = attrs.phase(*b.inputs[BackIn::kStep].as<std::int32_t>());
  const bool skips = *b.inputs[BackIn::kSkips].as<float>() != 0;
  const RowMask mask = b.inputs[BackIn::kMask].as<std::uint8_t>();
  const auto count = double(plan.counts(mask, b.inputs[BackIn::kSums]).kept);
  const bool is_step = attrs.training && count > 0;
  const WideDoubles share = WideDoubles::all(1 / count);
  const WideDoubles keep = WideDoubles::all(attrs.keep), rest = WideDoubles::all(1 - attrs.keep);
  const float* gains = b.inputs[BackIn::kGain].as<float>();
  float* ring = b.outputs[BackOut::kNextGz].as<float>();
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles ratio = WideDoubles::of(part.load(b.inputs[BackIn::kRatio].as<float>() + c));
    const WideDoubles gain = gains ? ratio * WideDoubles::of(part.load(gains + c)) : ratio;
    const WideDoubles products = sum_of_blocks(plan, b.workspace, 1, c);
    const Floats nu = part.load(b.inputs[BackIn::kNu].as<float>() + c);
    WideDoubles slope = WideDoubles::zero(), next = WideDoubles::of(nu);
    if (is_step) {
      WideDoubles mean = products * gain * share;
      const auto window = window_of(part, ring + c, plan, phase, mean.floats());
      if (phase.averages && !skips) mean = window.mean();
      part.store(skips ? nu : window.value, ring + window.row * window.channels + c);
      next = next * keep + mean * rest;
      slope = skips ? mean : next;
    }
    part.store(gain.floats(), plan.constant(b.workspace, kGain) + c);
    part.store(slope.floats(), plan.constant(b.workspace, kSlope) + c);
    if (attrs.training) part.store(next.floats(), b.outputs[BackOut::kNextNu].as<float>() + c);
    store_parameter_gradients<BackOut>(part, b, c, products * ratio,
                                       sum_of_blocks(plan, b.workspace, 0, c));
  });
}

void backward(const Binding& b, const UnifiedPlan& plan) {
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

Prepared prepare_unified_norm(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const UnifiedPlan plan{{column_blocks(sizes, 1, 1), 1, 0, context.has(In::kSquares)},
                         context.attrs<UnifiedNormAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        if (plan.attrs.training) carry_on(b.inputs[In::kX2], b.outputs[Out::kNextX2]);
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_unified_norm_backward(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  const UnifiedPlan plan{{column_blocks(sizes, 2, 2), 2, 2, context.has(BackIn::kSums)},
                         context.attrs<UnifiedNormBackwardAttrs>()};
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

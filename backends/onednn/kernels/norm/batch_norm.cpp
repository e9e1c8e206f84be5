// Batch norm: sums over slabs of the tensor, then one more pass over it. A panel of channels that
// stays in L2 goes through both in one task.
#include "src/ops/norm/batch_norm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_BATCH_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_BATCH_NORM_PLAN
namespace keel::onednn {
namespace {

enum ForwardConstants : std::size_t { kFactor, kShift, kForwardConstants };
enum BackwardConstants : std::size_t { kLow, kScale, kMeanDy, kSlope, kBackwardConstants };

// The sum of the backward that a mask adds: dy over the rows left out.
constexpr std::size_t kPaddingDy = 3;

// A mask is input 5 of both nodes.
struct BatchPlan : ColumnPlan {
  BatchNormAttrs attrs;

  // What the sum of squares is divided by.
  double variance_count(RowMask mask, bool unbiased) const {
    return keel::variance_count(attrs.counts_padding() ? blocks.sizes.count() : count(mask),
                                unbiased);
  }
};

RowMask mask_of(const Binding& b) { return b.inputs[5].as<std::uint8_t>(); }

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/batch_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void forward_sums(const Binding& b, const BatchPlan& plan, std::size_t block, const Slab& slab) {
  slab_moments(slab, mask_of(b), b.inputs[0].as<float>(),
               moments_at(plan, {b.workspace, block, 0}, slab.first));
}

// running <- keep * running + (1 - keep) * batch, for a register's worth of channels.
template <class Part>
void blend(Part part, const float* before, const WideDoubles& batch, double keep, float* after) {
  const WideDoubles kept = WideDoubles::of(part.load(before)) * WideDoubles::all(keep);
  part.store((kept + batch * WideDoubles::all(1 - keep)).floats(), after);
}

// A register's worth of channels; a float lacks `low` of a mean that dwarfs the deviations.
struct Statistics {
  Floats mean, low, rstd;
};

// mean and rstd of channels c, c + 1, ..., and the constants of y = (x - mean) * factor + shift.
template <class Part>
void store_statistics(Part part, const Binding& b, const BatchPlan& plan, std::size_t c,
                      const Statistics& of) {
  const float *gains = b.inputs[1].as<float>(), *biases = b.inputs[2].as<float>();
  const Floats factor = gains ? hn::Mul(of.rstd, part.load(gains + c)) : of.rstd;
  const Floats bias = biases ? part.load(biases + c) : zero();
  part.store(of.mean, b.outputs[1].as<float>() + c);
  part.store(of.rstd, b.outputs[2].as<float>() + c);
  part.store(factor, plan.constant(b.workspace, kFactor) + c);
  part.store(hn::NegMulAdd(of.low, factor, bias), plan.constant(b.workspace, kShift) + c);
}

// From the moments of all blocks: the statistics and what follows for the running ones.
void batch_statistics(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  merge_blocks(plan.blocks, mask_of(b), slab.channels, [&](std::size_t block) HWY_ATTR {
    return moments_at(plan, {b.workspace, block, 0}, slab.first);
  });
  const ChannelMoments total = moments_at(plan, {b.workspace, 0, 0}, slab.first);
  const BatchNormAttrs& attrs = plan.attrs;
  const auto share_of = [&](bool unbiased) HWY_ATTR {
    return WideDoubles::all(1 / plan.variance_count(mask_of(b), unbiased));
  };
  const WideDoubles eps = WideDoubles::all(attrs.eps), share = share_of(attrs.unbiased);
  const WideDoubles running_share = share_of(attrs.running_unbiased);
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const WideDoubles mean = WideDoubles::load(total.mean + i);
    const WideDoubles squares = WideDoubles::load(total.squares + i);
    const Floats rstd = reciprocal_sqrt(squares * share + eps);
    const Floats high = mean.floats();
    store_statistics(part, b, plan, c, {high, (mean - WideDoubles::of(high)).floats(), rstd});
    blend(part, b.inputs[3].as<float>() + c, mean, attrs.keep, b.outputs[3].as<float>() + c);
    blend(part, b.inputs[4].as<float>() + c, squares * running_share, attrs.keep,
          b.outputs[4].as<float>() + c);
  });
}

// Evaluation, or a batch without a row: the running statistics instead.
void running_statistics(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const WideDoubles eps = WideDoubles::all(plan.attrs.eps);
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const Floats mean = part.load(b.inputs[3].as<float>() + c);
    const Floats variance = part.load(b.inputs[4].as<float>() + c);
    const Floats rstd = reciprocal_sqrt(WideDoubles::of(variance) + eps);
    store_statistics(part, b, plan, c, {mean, zero(), rstd});
    if (!plan.attrs.training) return;
    part.store(mean, b.outputs[3].as<float>() + c);
    part.store(variance, b.outputs[4].as<float>() + c);
  });
}

void forward_write(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const float* bias = b.inputs[2].as<float>();
  float* y = b.outputs[0].as<float>();
  write_centred(slab,
                {b.inputs[0].as<float>(), b.outputs[1].as<float>(),
                 plan.constant(b.workspace, kFactor), plan.constant(b.workspace, kShift)},
                ResultRows(b, slab.run_length()));
  if (bias == nullptr || !plan.attrs.counts_padding()) return clear_left_out(slab, mask_of(b), y);
  for_left_out(slab, mask_of(b),
               [&](std::size_t at) { std::copy_n(bias + slab.first, slab.channels, y + at); });
}

void forward(const Binding& b, const BatchPlan& plan) {
  const bool uses_batch = plan.attrs.training && plan.count(mask_of(b)) > 0;
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Slab& slab) HWY_ATTR {
        if (uses_batch) forward_sums(b, plan, block, slab);
      },
      [&](const Slab& slab) HWY_ATTR {
        uses_batch ? batch_statistics(b, plan, slab) : running_statistics(b, plan, slab);
      },
      [&](const Slab& slab) HWY_ATTR { forward_write(b, plan, slab); });
}

// The sums of the kept rows; behind them, where padding counts, that of the dy of the others.
void backward_sums(const Binding& b, const BatchPlan& plan, std::size_t block, const Slab& slab) {
  const float* dy = b.inputs[4].as<float>();
  slab_sums(slab, mask_of(b),
            {b.inputs[0].as<float>(), dy, b.inputs[2].as<float>(), b.inputs[3].as<float>()},
            sums_at(plan, {b.workspace, block, 0}, slab.first));
  if (!mask_of(b) || !plan.attrs.counts_padding()) return;
  double* const padding = plan.sum(b.workspace, block, kPaddingDy) + slab.first;
  std::fill_n(padding, slab.channels, 0.0);
  for_left_out(slab, mask_of(b), [&](std::size_t at) HWY_ATTR {
    for_lanes(slab.channels, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
      add_to(padding + c, WideDoubles::of(part.load(dy + at + c)));
    });
  });
}

// From the sums of all blocks: dgain, dbias and the constants of dx.
void backward_statistics(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const RowMask mask = mask_of(b);
  const auto n = double(plan.count(mask));
  const bool uses_batch = plan.attrs.training && n > 0;
  const WideDoubles mean_share = WideDoubles::all(uses_batch ? 1 / n : 0);
  const WideDoubles slope_share =
      WideDoubles::all(uses_batch ? 1 / plan.variance_count(mask, plan.attrs.unbiased) : 0);
  const auto total = [&](std::size_t kind, std::size_t c)
                         HWY_ATTR { return sum_of_blocks(plan, b.workspace, kind, c); };
  for_lanes(slab.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = slab.first + i;
    const WideDoubles low = total(0, c) * mean_share, dy = total(1, c);
    const WideDoubles dgain = total(2, c) - low * dy;
    const Floats rstd = part.load(b.inputs[3].as<float>() + c);
    const float* gain = b.inputs[1].as<float>();
    part.store(low.floats(), plan.constant(b.workspace, kLow) + c);
    part.store(gain ? hn::Mul(rstd, part.load(gain + c)) : rstd,
               plan.constant(b.workspace, kScale) + c);
    part.store((dy * mean_share).floats(), plan.constant(b.workspace, kMeanDy) + c);
    part.store((dgain * slope_share).floats(), plan.constant(b.workspace, kSlope) + c);
    if (b.outputs[1]) part.store(dgain.floats(), b.outputs[1].as<float>() + c);
    if (!b.outputs[2]) return;
    const bool has_padding = mask != nullptr && plan.attrs.counts_padding();
    const WideDoubles dbias = has_padding ? dy + total(kPaddingDy, c) : dy;
    part.store(dbias.floats(), b.outputs[2].as<float>() + c);
  });
}

void backward_write(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const auto constant = [&](std::size_t kind) { return plan.constant(b.workspace, kind); };
  write_centred_gradient(slab, mask_of(b),
                         {{b.inputs[2].as<float>(), b.inputs[3].as<float>(), constant(kLow)},
                          b.inputs[0].as<float>(),
                          b.inputs[4].as<float>(),
                          constant(kScale),
                          constant(kMeanDy),
                          constant(kSlope)},
                         ResultRows(b, slab.run_length()));
}

// Evaluation: dx = scale * dy.
void backward_scale(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const float *scale = plan.constant(b.workspace, kScale), *dy = b.inputs[4].as<float>();
  const ResultRows dx(b, slab.run_length());
  for_slab(
      slab, [=](auto reader, std::size_t c) KEEL_LOOP_BODY { return reader.load(scale + c); },
      [=](auto part, Floats scale_of_channel, std::size_t i)
          KEEL_LOOP_BODY { dx.put(part, hn::Mul(scale_of_channel, part.load(dy + i)), i); });
  clear_left_out(slab, mask_of(b), dx.data);
}

void backward(const Binding& b, const BatchPlan& plan) {
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Slab& slab) HWY_ATTR { backward_sums(b, plan, block, slab); },
      [&](const Slab& slab) HWY_ATTR { backward_statistics(b, plan, slab); },
      [&](const Slab& slab) HWY_ATTR {
        plan.attrs.training ? backward_write(b, plan, slab) : backward_scale(b, plan, slab);
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

namespace {

// `tensors` are read in both passes, `sums` are kept.
BatchPlan plan_of(const NodeContext& context, std::int64_t tensors, std::size_t sums,
                  std::size_t constants) {
  return {{column_blocks(column_sizes(context.input(0).shape), tensors, std::int64_t(sums)), sums,
           constants},
          context.attrs<BatchNormAttrs>()};
}

}  // namespace

Prepared prepare_batch_norm(const NodeContext& context) {
  const BatchPlan plan = plan_of(context, 1, 2, kForwardConstants);
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_batch_norm_backward(const NodeContext& context) {
  const std::size_t sums = context.has(5) ? kPaddingDy + 1 : kPaddingDy;
  const BatchPlan plan = plan_of(context, 2, sums, kBackwardConstants);
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

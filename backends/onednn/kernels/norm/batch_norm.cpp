// Batch norm: sums over slabs of the tensor, then one more pass over it. A panel of channels that
// stays in L2 goes through both in one task.
#include "src/ops/norm/batch_norm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_BATCH_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_BATCH_NORM_PLAN
namespace keel::onednn {
namespace {

enum Constants : std::size_t { kLow, kForwardConstants };
enum BackwardConstants : std::size_t {
  kScale = kForwardConstants,
  kMeanDy,
  kSlope,
  kBackwardConstants
};

// A mask is input 5 of both nodes; under one every sum has a second place, its scratch.
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
  kept_moments(slab, mask_of(b), b.inputs[0].as<float>(),
               moments_at(plan, {b.workspace, block, 0}, slab.first),
               moments_at(plan, {b.workspace, block, 2}, slab.first));
}

// running <- keep * running + (1 - keep) * batch, for a register's worth of channels.
template <class Part>
void blend(Part part, const float* before, const WideDoubles& batch, double keep, float* after) {
  const WideDoubles kept = WideDoubles::of(part.load(before)) * WideDoubles::all(keep);
  part.store((kept + batch * WideDoubles::all(1 - keep)).floats(), after);
}

// From the moments of all blocks: mean, rstd, what the float mean lacks, the running statistics.
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
  for_lanes(slab.channels, [&](auto part, std::size_t i) HWY_ATTR {
    const std::size_t c = slab.first + i;
    const WideDoubles mean = WideDoubles::load(total.mean + i);
    const WideDoubles squares = WideDoubles::load(total.squares + i);
    const Floats rstd = reciprocal_sqrt(squares * share + eps);
    const Floats high = mean.floats();
    part.store(high, b.outputs[1].as<float>() + c);
    part.store(rstd, b.outputs[2].as<float>() + c);
    part.store(hn::Mul((mean - WideDoubles::of(high)).floats(), rstd),
               plan.constant(b.workspace, kLow) + c);
    blend(part, b.inputs[3].as<float>() + c, mean, attrs.keep, b.outputs[3].as<float>() + c);
    blend(part, b.inputs[4].as<float>() + c, squares * running_share, attrs.keep,
          b.outputs[4].as<float>() + c);
  });
}

// Evaluation, or a batch without a row: the running statistics instead.
void running_statistics(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const WideDoubles eps = WideDoubles::all(plan.attrs.eps);
  for_lanes(slab.channels, [&](auto part, std::size_t i) HWY_ATTR {
    const std::size_t c = slab.first + i;
    const Floats mean = part.load(b.inputs[3].as<float>() + c);
    const Floats variance = part.load(b.inputs[4].as<float>() + c);
    part.store(mean, b.outputs[1].as<float>() + c);
    part.store(reciprocal_sqrt(WideDoubles::of(variance) + eps), b.outputs[2].as<float>() + c);
    part.store(zero(), plan.constant(b.workspace, kLow) + c);
    if (!plan.attrs.training) return;
    part.store(mean, b.outputs[3].as<float>() + c);
    part.store(variance, b.outputs[4].as<float>() + c);
  });
}

void forward_write(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const float *gain = b.inputs[1].as<float>(), *bias = b.inputs[2].as<float>();
  float* y = b.outputs[0].as<float>();
  write_centred(
      slab, mask_of(b),
      {{b.outputs[1].as<float>(), b.outputs[2].as<float>(), plan.constant(b.workspace, kLow)},
       b.inputs[0].as<float>(),
       gain,
       bias},
      b.outputs[0]);
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
  const ChannelSums scratch = sums_at(plan, {b.workspace, block, 3}, slab.first);
  kept_sums(slab, mask_of(b),
            {b.inputs[0].as<float>(), dy, b.inputs[2].as<float>(), b.inputs[3].as<float>()},
            sums_at(plan, {b.workspace, block, 0}, slab.first), scratch);
  if (!mask_of(b) || !plan.attrs.counts_padding()) return;
  double* const padding = scratch.xhat;
  std::fill_n(padding, slab.channels, 0.0);
  for_left_out(slab, mask_of(b), [&](std::size_t at) HWY_ATTR {
    for_lanes(slab.channels, [&](auto part, std::size_t c) HWY_ATTR {
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
  for_lanes(slab.channels, [&](auto part, std::size_t i) HWY_ATTR {
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
    const WideDoubles dbias = has_padding ? dy + total(3, c) : dy;
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
                         b.outputs[0]);
}

// Evaluation: dx = scale * dy.
void backward_scale(const Binding& b, const BatchPlan& plan, const Slab& slab) {
  const float *scale = plan.constant(b.workspace, kScale), *dy = b.inputs[4].as<float>();
  float* dx = b.outputs[0].as<float>();
  for_slab(
      slab, [=](auto reader, std::size_t c) HWY_ATTR { return reader.load(scale + c); },
      [=, stride = slab.stride](auto part, Floats scale_of_channel, auto rows, std::size_t i)
          HWY_ATTR {
            for (std::size_t k = 0; k < rows(); ++k) {
              const std::size_t at = i + k * stride;
              part.store(hn::Mul(scale_of_channel, part.load(dy + at)), dx + at);
            }
          });
  clear_left_out(slab, mask_of(b), dx);
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

// `tensors` are read in both passes, `sums` are kept; the blocks are the same with and without a
// mask.
BatchPlan plan_of(const NodeContext& context, std::int64_t tensors, std::size_t sums,
                  std::size_t constants) {
  const bool masked = context.has(5);
  return {{column_blocks(column_sizes(context.input(0).shape), tensors, std::int64_t(sums)),
           masked ? 2 * sums : sums, constants},
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
  const BatchPlan plan = plan_of(context, 2, 3, kBackwardConstants);
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

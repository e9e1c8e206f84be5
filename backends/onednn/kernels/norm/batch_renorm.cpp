// Batch renormalization is made of the parts of column norms: out = xhat * r + d becomes a scale
// and a shift of each channel.
#include "src/ops/norm/batch_renorm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_BATCH_RENORM_PLAN  // this file is compiled once per instruction set
#define KEEL_BATCH_RENORM_PLAN
namespace keel::onednn {
namespace {

using In = BatchRenormInput;
using Out = BatchRenormOutput;
using BackIn = BatchRenormBackwardInput;
using BackOut = BatchRenormGradient;

enum Forward : std::size_t { kFactor, kShift, kForwardConstants };
enum Backward : std::size_t { kBackwardLow, kScale, kMeanDy, kSlope, kBackwardConstants };

struct RenormPlan : ColumnPlan {
  BatchRenormAttrs attrs;
};

RowMask forward_mask(const Binding& b) { return b.inputs[In::kMask].as<std::uint8_t>(); }
RowMask backward_mask(const Binding& b) { return b.inputs[BackIn::kMask].as<std::uint8_t>(); }

ColumnCounts forward_counts(const Binding& b, const RenormPlan& plan) {
  return plan.counts(forward_mask(b), b.inputs[In::kMoments]);
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/batch_renorm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void forward_sums(const Binding& b, const RenormPlan& plan, std::size_t block, const Tile& tile) {
  if (plan.is_given) {
    return take_moments(plan, {b.workspace, block, 0}, b.inputs[In::kMoments], tile);
  }
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    tile_moments(tile, forward_mask(b), b.inputs[In::kX].as<T>(),
                 moments_at(plan, {b.workspace, block, 0}, tile.first));
  });
}

// The statistics that a register's worth of channels is normalized by.
struct Statistics {
  WideDoubles mean;
  Floats rstd, r, d;
};

// Stores mean, rstd, r and d for the backward, and the constants of y.
template <class Part>
HWY_INLINE void store_statistics(Part part, const Binding& b, const RenormPlan& plan, std::size_t c,
                                 const Statistics& of) {
  const float *gains = b.inputs[In::kGain].as<float>(), *biases = b.inputs[In::kBias].as<float>();
  const Floats mean = of.mean.floats(), low = (of.mean - WideDoubles::of(mean)).floats();
  const Floats gain = gains ? part.load(gains + c) : splat(1);
  const Floats bias = biases ? part.load(biases + c) : zero();
  part.store(mean, b.outputs[Out::kMean].as<float>() + c);
  part.store(of.rstd, b.outputs[Out::kRstd].as<float>() + c);
  part.store(of.r, b.outputs[Out::kR].as<float>() + c);
  part.store(of.d, b.outputs[Out::kD].as<float>() + c);
  // y = (x - mean) * factor + shift with the mean in float; the shift makes up for what that lacks.
  const Floats factor = hn::Mul(hn::Mul(of.rstd, of.r), gain);
  part.store(factor, plan.constant(b.workspace, kFactor) + c);
  part.store(hn::MulAdd(of.d, gain, hn::NegMulAdd(low, factor, bias)),
             plan.constant(b.workspace, kShift) + c);
}

// Computes the statistics from the moments of all blocks, and the running ones from both.
void batch_statistics(const Binding& b, const RenormPlan& plan, const Tile& tile) {
  const ChannelMoments total = merged_moments(plan, forward_mask(b), b.workspace, tile);
  const double n = double(forward_counts(b, plan).kept);
  const RenormLimits limits = renorm_limits(plan.attrs, *b.inputs[In::kStep].as<std::int32_t>());
  const WideDoubles rate = WideDoubles::all(plan.attrs.rate);
  const WideDoubles share = WideDoubles::all(1 / n), eps = WideDoubles::all(plan.attrs.eps);
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles before =
        WideDoubles::of(part.load(b.inputs[In::kRunningMean].as<float>() + c));
    const Floats running_std = part.load_or(b.inputs[In::kRunningStd].as<float>() + c, 1);
    const WideDoubles std_before = WideDoubles::of(running_std);
    const Floats rstd_before = hn::Div(splat(1), running_std);
    WideDoubles mean = before, s = std_before;  // a batch without a row keeps them
    Floats rstd = rstd_before;
    if (n > 0) {
      const WideDoubles variance = WideDoubles::load(total.squares + i) * share + eps;
      mean = WideDoubles::load(total.mean + i);
      rstd = reciprocal_sqrt(variance);
      s = variance * WideDoubles::of(rstd);
    }
    // Counts v in running deviations and keeps it within a window.
    const auto in_deviations = [&](const WideDoubles& v, double low, double high) KEEL_LOOP_BODY {
      const Floats value = hn::Mul(v.floats(), rstd_before);
      return hn::Min(hn::Max(value, splat(float(low))), splat(float(high)));
    };
    store_statistics(part, b, plan, c,
                     {mean, rstd, in_deviations(s, 1 / limits.r_max, limits.r_max),
                      in_deviations(mean - before, -limits.d_max, limits.d_max)});
    part.store((before + (mean - before) * rate).floats(),
               b.outputs[Out::kNextRunningMean].as<float>() + c);
    part.store((std_before + (s - std_before) * rate).floats(),
               b.outputs[Out::kNextRunningStd].as<float>() + c);
  });
}

// In evaluation the running statistics take their place, with r = 1 and d = 0.
void running_statistics(const Binding& b, const RenormPlan& plan, const Tile& tile) {
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles mean = WideDoubles::of(part.load(b.inputs[In::kRunningMean].as<float>() + c));
    const Floats std = part.load_or(b.inputs[In::kRunningStd].as<float>() + c, 1);
    store_statistics(part, b, plan, c, {mean, hn::Div(splat(1), std), splat(1), zero()});
  });
}

void forward_write(const Binding& b, const RenormPlan& plan, const Tile& tile) {
  const auto constant = [&](std::size_t kind) { return plan.constant(b.workspace, kind); };
  const ResultRows y(b, tile.run_length());
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_centred(tile,
                  CentredForward<T>{b.inputs[In::kX].as<T>(), b.outputs[Out::kMean].as<float>(),
                                    constant(kFactor), constant(kShift)},
                  y);
  });
  clear_left_out(tile, forward_mask(b), y);
}

void forward(const Binding& b, const RenormPlan& plan) {
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        if (plan.attrs.training) forward_sums(b, plan, block, tile);
      },
      [&](const Tile& tile) HWY_ATTR {
        plan.attrs.training ? batch_statistics(b, plan, tile) : running_statistics(b, plan, tile);
      },
      [&](const Tile& tile) HWY_ATTR { forward_write(b, plan, tile); });
}

void backward_sums(const Binding& b, const RenormPlan& plan, std::size_t block, const Tile& tile) {
  if (plan.is_given) {
    return take_gradient_sums(plan, {b.workspace, block, 0}, b.inputs[BackIn::kSums], plan.sums,
                              tile);
  }
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    const SavedChannels<T> saved{b.inputs[BackIn::kX].as<T>(), b.inputs[BackIn::kDy].as<T>(),
                                 b.inputs[BackIn::kMean].as<float>(),
                                 b.inputs[BackIn::kRstd].as<float>()};
    tile_sums(tile, backward_mask(b), saved, sums_at(plan, {b.workspace, block, 0}, tile.first));
  });
}

// Computes dgain, dbias and the constants of dx from the sums of all blocks. In evaluation r is 1
// and no mean is taken back.
void backward_statistics(const Binding& b, const RenormPlan& plan, const Tile& tile) {
  const double n = double(plan.counts(backward_mask(b), b.inputs[BackIn::kSums]).kept);
  const WideDoubles share = WideDoubles::all(plan.attrs.training && n > 0 ? 1 / n : 0);
  const auto total = [&](std::size_t kind, std::size_t c)
                         HWY_ATTR { return sum_of_blocks(plan, b.workspace, kind, c); };
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const auto load = [&](BackIn::Place place) HWY_ATTR {
      return WideDoubles::of(part.load(b.inputs[place].template as<float>() + c));
    };
    const WideDoubles low = total(0, c) * share, dbias = total(1, c);
    const WideDoubles dy_xhat = total(2, c) - low * dbias;
    const WideDoubles r = load(BackIn::kR), r_rstd = r * load(BackIn::kRstd);
    const WideDoubles scale = b.inputs[BackIn::kGain] ? r_rstd * load(BackIn::kGain) : r_rstd;
    part.store(low.floats(), plan.constant(b.workspace, kBackwardLow) + c);
    part.store(scale.floats(), plan.constant(b.workspace, kScale) + c);
    part.store((dbias * share).floats(), plan.constant(b.workspace, kMeanDy) + c);
    part.store((dy_xhat * share).floats(), plan.constant(b.workspace, kSlope) + c);
    if (b.outputs[BackOut::kDgain]) {
      part.store((dy_xhat * r + dbias * load(BackIn::kD)).floats(),
                 b.outputs[BackOut::kDgain].as<float>() + c);
    }
    if (b.outputs[BackOut::kDbias]) {
      part.store(dbias.floats(), b.outputs[BackOut::kDbias].as<float>() + c);
    }
  });
}

// scale = r * rstd * gain
template <class T>
void backward_write(const Binding& b, const RenormPlan& plan, const Tile& tile) {
  const auto constant = [&](std::size_t kind) { return plan.constant(b.workspace, kind); };
  write_centred_gradient(
      tile, backward_mask(b),
      CentredBackward<T>{{b.inputs[BackIn::kMean].as<float>(), b.inputs[BackIn::kRstd].as<float>(),
                          constant(kBackwardLow)},
                         b.inputs[BackIn::kX].as<T>(),
                         b.inputs[BackIn::kDy].as<T>(),
                         constant(kScale),
                         constant(kMeanDy),
                         constant(kSlope)},
      ResultRows(b, tile.run_length()));
}

void backward(const Binding& b, const RenormPlan& plan) {
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR { backward_sums(b, plan, block, tile); },
      [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, tile); },
      [&](const Tile& tile) HWY_ATTR {
        with_elements(b.inputs[BackIn::kX],
                      [&]<class T>(T) HWY_ATTR { backward_write<T>(b, plan, tile); });
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

Prepared prepare_batch_renorm(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const RenormPlan plan{
      {column_blocks(sizes, 1, 2), 2, kForwardConstants, context.has(In::kMoments)},
      context.attrs<BatchRenormAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
        if (!plan.attrs.training) return;
        const bool counts = forward_counts(b, plan).kept > 0;
        *b.outputs[Out::kNextStep].as<std::int32_t>() =
            *b.inputs[In::kStep].as<std::int32_t>() + (counts ? 1 : 0);
      },
      plan.bytes());
}

Prepared prepare_batch_renorm_backward(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  const RenormPlan plan{{column_blocks(sizes, 2, centred_sum_kinds(false)), 3, kBackwardConstants,
                         context.has(BackIn::kSums)},
                        context.attrs<BatchRenormBackwardAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

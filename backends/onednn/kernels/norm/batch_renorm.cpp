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

using Forward = CentredForwardConstant;
using Backward = CentredBackwardConstant;

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

#include "backends/onednn/simd/centred_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

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
  const SplitMean mean(of.mean);
  const Floats gain = gains ? part.load(gains + c) : splat(1);
  const Floats bias = biases ? part.load(biases + c) : zero();
  part.store(mean.high, b.outputs[Out::kMean].as<float>() + c);
  part.store(of.rstd, b.outputs[Out::kRstd].as<float>() + c);
  part.store(of.r, b.outputs[Out::kR].as<float>() + c);
  part.store(of.d, b.outputs[Out::kD].as<float>() + c);
  // y = (x - mean) * factor + shift with the mean in float; the shift makes up for what that lacks.
  const Floats factor = hn::Mul(hn::Mul(of.rstd, of.r), gain);
  part.store(factor, plan.constant(b.workspace, Forward::kFactor) + c);
  part.store(hn::MulAdd(of.d, gain, hn::NegMulAdd(mean.low, factor, bias)),
             plan.constant(b.workspace, Forward::kShift) + c);
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

void forward(const Binding& b, const RenormPlan& plan) {
  const bool training = plan.attrs.training;
  run_centred<In, Out>(
      b, plan, training,
      [&](const Tile& tile) HWY_ATTR {
        training ? batch_statistics(b, plan, tile) : running_statistics(b, plan, tile);
      },
      [&](const Tile& tile, const ResultRows& y)
          HWY_ATTR { clear_left_out(tile, forward_mask(b), y); });
}

// Computes dgain, dbias and the constants of dx from the sums of all blocks. In evaluation r is 1
// and no mean is taken back.
void backward_statistics(const Binding& b, const RenormPlan& plan, const Tile& tile) {
  const double n = double(plan.counts(backward_mask(b), b.inputs[BackIn::kSums]).kept);
  const WideDoubles share = WideDoubles::all(plan.attrs.training && n > 0 ? 1 / n : 0);
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const auto load = [&](BackIn::Place place) HWY_ATTR {
      return WideDoubles::of(part.load(b.inputs[place].template as<float>() + c));
    };
    const CentredSums sums(b, plan, c, share);
    const WideDoubles r = load(BackIn::kR), r_rstd = r * load(BackIn::kRstd);
    const WideDoubles scale = b.inputs[BackIn::kGain] ? r_rstd * load(BackIn::kGain) : r_rstd;
    const auto store = [&](const WideDoubles& value, Backward::Kind kind) HWY_ATTR {
      part.store(value.floats(), plan.constant(b.workspace, kind) + c);
    };
    store(sums.low, Backward::kLow);
    store(scale, Backward::kScale);
    store(sums.dbias * share, Backward::kMeanDy);
    store(sums.dgain * share, Backward::kSlope);
    store_parameter_gradients<BackOut>(part, b, c, sums.dgain * r + sums.dbias * load(BackIn::kD),
                                       sums.dbias);
  });
}

void backward(const Binding& b, const RenormPlan& plan) {
  run_centred_backward<BackIn>(
      b, plan, [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, tile); },
      [&](const Tile& tile, const auto& in, const ResultRows& dx)
          HWY_ATTR { write_centred_gradient(tile, backward_mask(b), in, dx); });
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
  const RenormPlan plan{{column_blocks(sizes, 1, 2), 2, Forward::kCount, context.has(In::kMoments)},
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
  const RenormPlan plan{{column_blocks(sizes, 2, centred_sum_kinds(false)), kPaddingDy,
                         Backward::kCount, context.has(BackIn::kSums)},
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

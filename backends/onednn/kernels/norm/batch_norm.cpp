// Batch norm forms sums over tiles of the tensor, then passes over it once more. If a panel of
// channels stays in L2, one task does both passes over it.
#include "src/ops/norm/batch_norm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_BATCH_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_BATCH_NORM_PLAN
namespace keel::onednn {
namespace {

using In = BatchNormInput;
using Out = BatchNormOutput;
using BackIn = BatchNormBackwardInput;
using BackOut = BatchNormGradient;

using Forward = CentredForwardConstant;
using Backward = CentredBackwardConstant;

struct BatchSampler : ColumnPlan {
  BatchNormAttrs attrs;

  // The divisor of the sum of squares.
  double variance_count(const ColumnCounts& of, bool unbiased) const {
    return keel::variance_count(attrs.counts_padding() ? of.all : of.kept, unbiased);
  }
};

// The forward and the backward have their mask in the same place.
static_assert(int(In::kMask) == int(BackIn::kMask));
RowMask mask_of(const Binding& b) { return b.inputs[In::kMask].as<std::uint8_t>(); }

ColumnCounts forward_counts(const Binding& b, const BatchSampler& plan) {
  return plan.counts(mask_of(b), b.inputs[In::kMoments]);
}
ColumnCounts backward_counts(const Binding& b, const BatchSampler& plan) {
  return plan.counts(mask_of(b), b.inputs[BackIn::kSums]);
}
bool has_padding(const Binding& b, const BatchSampler& plan) {
  return mask_of(b) != nullptr && plan.attrs.counts_padding();
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/batch_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

// running <- keep * running + (1 - keep) * batch, for a register's worth of channels.
template <class Part>
void blend(Part part, const float* before, const WideDoubles& batch, double keep, float* after) {
  const WideDoubles kept = WideDoubles::of(part.load(before)) * WideDoubles::all(keep);
  part.store((kept + batch * WideDoubles::all(1 - keep)).floats(), after);
}

// Statistics of a register's worth of channels.
struct Statistics {
  SplitMean mean;
  Floats rstd;
};

// Stores mean and rstd of channels c, c + 1, ..., and the constants of
//     y = (x - mean) * factor + shift
template <class Part>
void store_statistics(Part part, const Binding& b, const BatchSampler& plan, std::size_t c,
                      const Statistics& of) {
  const float *gains = b.inputs[In::kGain].as<float>(), *biases = b.inputs[In::kBias].as<float>();
  const Floats factor = gains ? hn::Mul(of.rstd, part.load(gains + c)) : of.rstd;
  const Floats bias = biases ? part.load(biases + c) : zero();
  part.store(of.mean.high, b.outputs[Out::kMean].as<float>() + c);
  part.store(of.rstd, b.outputs[Out::kRstd].as<float>() + c);
  part.store(factor, plan.constant(b.workspace, Forward::kFactor) + c);
  part.store(hn::NegMulAdd(of.mean.low, factor, bias),
             plan.constant(b.workspace, Forward::kShift) + c);
}

// Computes the statistics from the moments of all blocks, and the running ones from both.
void batch_statistics(const Binding& b, const BatchSampler& plan, const Tile& tile) {
  const ChannelMoments total = merged_moments(plan, mask_of(b), b.workspace, tile);
  const BatchNormAttrs& attrs = plan.attrs;
  const ColumnCounts counts = forward_counts(b, plan);
  const auto share_of = [&](bool unbiased) HWY_ATTR {
    return WideDoubles::all(1 / plan.variance_count(counts, unbiased));
  };
  const WideDoubles eps = WideDoubles::all(attrs.eps), share = share_of(attrs.unbiased);
  const WideDoubles running_share = share_of(attrs.running_unbiased);
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles mean = WideDoubles::load(total.mean + i);
    const WideDoubles squares = WideDoubles::load(total.squares + i);
    store_statistics(part, b, plan, c, {SplitMean(mean), reciprocal_sqrt(squares * share + eps)});
    blend(part, b.inputs[In::kRunningMean].as<float>() + c, mean, attrs.keep,
          b.outputs[Out::kNextRunningMean].as<float>() + c);
    blend(part, b.inputs[In::kRunningVar].as<float>() + c, squares * running_share, attrs.keep,
          b.outputs[Out::kNextRunningVar].as<float>() + c);
  });
}

// In evaluation, and for a batch without a row, the running statistics take their place.
void running_statistics(const Binding& b, const BatchSampler& plan, const Tile& tile) {
  const WideDoubles eps = WideDoubles::all(plan.attrs.eps);
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const Floats mean = part.load(b.inputs[In::kRunningMean].as<float>() + c);
    const Floats variance = part.load(b.inputs[In::kRunningVar].as<float>() + c);
    store_statistics(part, b, plan, c,
                     {SplitMean(mean), reciprocal_sqrt(WideDoubles::of(variance) + eps)});
    if (!plan.attrs.training) return;
    part.store(mean, b.outputs[Out::kNextRunningMean].as<float>() + c);
    part.store(variance, b.outputs[Out::kNextRunningVar].as<float>() + c);
  });
}

// Where padding counts, y of the rows left out is the bias.
void write_left_out(const Binding& b, const BatchSampler& plan, const Tile& tile,
                    const ResultRows& y) {
  const float* bias = b.inputs[In::kBias].as<float>();
  if (bias == nullptr || !plan.attrs.counts_padding()) return clear_left_out(tile, mask_of(b), y);
  for_left_out(tile, mask_of(b),
               [&](std::size_t at) { y.copy(bias + tile.first, tile.channels, at); });
}

void forward(const Binding& b, const BatchSampler& plan) {
  const bool uses_batch = plan.attrs.training && forward_counts(b, plan).kept > 0;
  run_centred<In, Out>(
      b, plan, uses_batch,
      [&](const Tile& tile) HWY_ATTR {
        uses_batch ? batch_statistics(b, plan, tile) : running_statistics(b, plan, tile);
      },
      [&](const Tile& tile, const ResultRows& y) HWY_ATTR { write_left_out(b, plan, tile, y); });
}

// The mean and the slope of a register's worth of channels in dx.
struct Slopes {
  WideDoubles mean_dy, slope;
};

// The part of a penalty, which is taken off both. `shares` are 1 / K and 1 / N, or 0 for a batch
// without a row.
template <class Part>
Slopes of_penalty(Part part, const Binding& b, const BatchNormAttrs& attrs, std::size_t c,
                  const Slopes& shares) {
  const auto of = [&](int place) HWY_ATTR {
    return WideDoubles::of(part.load_or(b.inputs[place].as<float>() + c, 1));
  };
  const WideDoubles mean = of(BackIn::kMean) - of(BackIn::kNextRunningMean);
  const WideDoubles running = (of(BackIn::kNextRunningVar) + WideDoubles::all(attrs.eps)).sqrt();
  const WideDoubles deviation = WideDoubles::all(1) / of(BackIn::kRstd) - running;
  return {WideDoubles::all(2 * attrs.mean_penalty) * mean * shares.mean_dy,
          WideDoubles::all(2 * attrs.deviation_penalty) * deviation * shares.slope};
}

// Computes dgain, dbias and the constants of dx from the sums of all blocks.
void backward_statistics(const Binding& b, const BatchSampler& plan, const Tile& tile) {
  const ColumnCounts counts = backward_counts(b, plan);
  const auto n = double(counts.kept);
  const bool uses_batch = plan.attrs.training && n > 0;
  const WideDoubles mean_share = WideDoubles::all(uses_batch ? 1 / n : 0);
  const WideDoubles slope_share =
      WideDoubles::all(uses_batch ? 1 / plan.variance_count(counts, plan.attrs.unbiased) : 0);
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const CentredSums sums(b, plan, c, mean_share);
    const Floats rstd = part.load(b.inputs[BackIn::kRstd].as<float>() + c);
    const float* gain = b.inputs[BackIn::kGain].as<float>();
    const Floats scale = gain ? hn::Mul(rstd, part.load(gain + c)) : rstd;
    Slopes slopes{sums.dbias * mean_share, sums.dgain * slope_share};
    if (plan.attrs.has_penalty()) {
      const Slopes less = of_penalty(part, b, plan.attrs, c, {mean_share, slope_share});
      const WideDoubles factor = WideDoubles::of(scale);  // as ShiftedBackward has them
      slopes = {factor * slopes.mean_dy - less.mean_dy, factor * slopes.slope - less.slope};
    }
    const auto store = [&](const WideDoubles& value, Backward::Kind kind) HWY_ATTR {
      part.store(value.floats(), plan.constant(b.workspace, kind) + c);
    };
    store(sums.low, Backward::kLow);
    part.store(scale, plan.constant(b.workspace, Backward::kScale) + c);
    store(slopes.mean_dy, Backward::kMeanDy);
    store(slopes.slope, Backward::kSlope);
    const WideDoubles dbias = has_padding(b, plan)
                                  ? sums.dbias + sum_of_blocks(plan, b.workspace, kPaddingDy, c)
                                  : sums.dbias;
    store_parameter_gradients<BackOut>(part, b, c, sums.dgain, dbias);
  });
}

// In evaluation dx = scale * dy.
template <class T>
void backward_scale(const CentredBackward<T>& in, RowMask mask, const Tile& tile,
                    const ResultRows& dx) {
  for_tile(
      tile, [=](auto reader, std::size_t c) KEEL_LOOP_BODY { return reader.load(in.scale + c); },
      [=](auto part, Floats scale_of_channel, std::size_t i)
          KEEL_LOOP_BODY { dx.put(part, hn::Mul(scale_of_channel, part.load(in.dy + i)), i); });
  clear_left_out(tile, mask, dx);
}

void backward(const Binding& b, const BatchSampler& plan) {
  const RowMask mask = mask_of(b);
  run_centred_backward<BackIn>(
      b, plan, [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, tile); },
      [&]<class T>(const Tile& tile, const CentredBackward<T>& in, const ResultRows& dx) HWY_ATTR {
        if (!plan.attrs.training) return backward_scale(in, mask, tile, dx);
        plan.attrs.has_penalty() ? write_centred_gradient(tile, mask, ShiftedBackward<T>{in}, dx)
                                 : write_centred_gradient(tile, mask, in, dx);
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

Prepared prepare_batch_norm(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(In::kX).shape);
  const BatchSampler plan{
      {column_blocks(sizes, 1, 2), 2, Forward::kCount, context.has(In::kMoments)},
      context.attrs<BatchNormAttrs>()};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_batch_norm_backward(const NodeContext& context) {
  const ColumnSizes sizes = column_sizes(context.input(BackIn::kX).shape);
  const auto& attrs = context.attrs<BatchNormBackwardAttrs>();
  const bool has_padding = context.has(BackIn::kMask) && attrs.counts_padding();
  const BatchSampler plan{{column_blocks(sizes, 2, centred_sum_kinds(has_padding)),
                           attrs.counts_padding() ? kPaddingDy + 1 : kPaddingDy, Backward::kCount,
                           context.has(BackIn::kSums)},
                          attrs};
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

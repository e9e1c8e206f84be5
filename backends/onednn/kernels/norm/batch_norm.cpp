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

enum ForwardConstants : std::size_t { kFactor, kShift, kForwardConstants };
enum BackwardConstants : std::size_t { kLow, kScale, kMeanDy, kSlope, kBackwardConstants };

// Where padding counts the backward has one more kind of sums, of dy over the rows left out.
constexpr std::size_t kPaddingDy = 3;

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

#include "backends/onednn/simd/centred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

void forward_sums(const Binding& b, const BatchSampler& plan, std::size_t block, const Tile& tile) {
  if (plan.is_given) {
    return take_moments(plan, {b.workspace, block, 0}, b.inputs[In::kMoments], tile);
  }
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    tile_moments(tile, mask_of(b), b.inputs[In::kX].as<T>(),
                 moments_at(plan, {b.workspace, block, 0}, tile.first));
  });
}

// running <- keep * running + (1 - keep) * batch, for a register's worth of channels.
template <class Part>
void blend(Part part, const float* before, const WideDoubles& batch, double keep, float* after) {
  const WideDoubles kept = WideDoubles::of(part.load(before)) * WideDoubles::all(keep);
  part.store((kept + batch * WideDoubles::all(1 - keep)).floats(), after);
}

// Statistics of a register's worth of channels; `low` is what the float lacks of a mean that dwarfs
// the deviations.
struct Statistics {
  Floats mean, low, rstd;
};

// Stores mean and rstd of channels c, c + 1, ..., and the constants of
//     y = (x - mean) * factor + shift
template <class Part>
void store_statistics(Part part, const Binding& b, const BatchSampler& plan, std::size_t c,
                      const Statistics& of) {
  const float *gains = b.inputs[In::kGain].as<float>(), *biases = b.inputs[In::kBias].as<float>();
  const Floats factor = gains ? hn::Mul(of.rstd, part.load(gains + c)) : of.rstd;
  const Floats bias = biases ? part.load(biases + c) : zero();
  part.store(of.mean, b.outputs[Out::kMean].as<float>() + c);
  part.store(of.rstd, b.outputs[Out::kRstd].as<float>() + c);
  part.store(factor, plan.constant(b.workspace, kFactor) + c);
  part.store(hn::NegMulAdd(of.low, factor, bias), plan.constant(b.workspace, kShift) + c);
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
    const Floats rstd = reciprocal_sqrt(squares * share + eps);
    const Floats high = mean.floats();
    store_statistics(part, b, plan, c, {high, (mean - WideDoubles::of(high)).floats(), rstd});
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
    const Floats rstd = reciprocal_sqrt(WideDoubles::of(variance) + eps);
    store_statistics(part, b, plan, c, {mean, zero(), rstd});
    if (!plan.attrs.training) return;
    part.store(mean, b.outputs[Out::kNextRunningMean].as<float>() + c);
    part.store(variance, b.outputs[Out::kNextRunningVar].as<float>() + c);
  });
}

void forward_write(const Binding& b, const BatchSampler& plan, const Tile& tile) {
  const float* bias = b.inputs[In::kBias].as<float>();
  const ResultRows y(b, tile.run_length());
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    write_centred(
        tile,
        CentredForward<T>{b.inputs[In::kX].as<T>(), b.outputs[Out::kMean].as<float>(),
                          plan.constant(b.workspace, kFactor), plan.constant(b.workspace, kShift)},
        y);
  });
  if (bias == nullptr || !plan.attrs.counts_padding()) return clear_left_out(tile, mask_of(b), y);
  for_left_out(tile, mask_of(b),
               [&](std::size_t at) { y.copy(bias + tile.first, tile.channels, at); });
}

void forward(const Binding& b, const BatchSampler& plan) {
  const bool uses_batch = plan.attrs.training && forward_counts(b, plan).kept > 0;
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR {
        if (uses_batch) forward_sums(b, plan, block, tile);
      },
      [&](const Tile& tile) HWY_ATTR {
        uses_batch ? batch_statistics(b, plan, tile) : running_statistics(b, plan, tile);
      },
      [&](const Tile& tile) HWY_ATTR { forward_write(b, plan, tile); });
}

// Forms the sums of the kept rows and after them, where padding counts, that of the dy of the
// others.
void backward_sums(const Binding& b, const BatchSampler& plan, std::size_t block,
                   const Tile& tile) {
  if (plan.is_given) {
    const std::size_t kinds = plan.attrs.counts_padding() ? kPaddingDy + 1 : kPaddingDy;
    return take_gradient_sums(plan, {b.workspace, block, 0}, b.inputs[BackIn::kSums], kinds, tile);
  }
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    const T* dy = b.inputs[BackIn::kDy].as<T>();
    tile_sums(
        tile, mask_of(b),
        SavedChannels<T>{b.inputs[BackIn::kX].as<T>(), dy, b.inputs[BackIn::kMean].as<float>(),
                         b.inputs[BackIn::kRstd].as<float>()},
        sums_at(plan, {b.workspace, block, 0}, tile.first));
    if (!has_padding(b, plan)) return;
    tile_left_out(tile, mask_of(b), dy, plan.sum(b.workspace, block, kPaddingDy) + tile.first);
  });
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
  const auto total = [&](std::size_t kind, std::size_t c)
                         HWY_ATTR { return sum_of_blocks(plan, b.workspace, kind, c); };
  for_lanes(tile.channels, [&](auto part, std::size_t i) KEEL_LOOP_BODY {
    const std::size_t c = tile.first + i;
    const WideDoubles low = total(0, c) * mean_share, dy = total(1, c);
    const WideDoubles dgain = total(2, c) - low * dy;
    const Floats rstd = part.load(b.inputs[BackIn::kRstd].as<float>() + c);
    const float* gain = b.inputs[BackIn::kGain].as<float>();
    const Floats scale = gain ? hn::Mul(rstd, part.load(gain + c)) : rstd;
    Slopes slopes{dy * mean_share, dgain * slope_share};
    if (plan.attrs.has_penalty()) {
      const Slopes less = of_penalty(part, b, plan.attrs, c, {mean_share, slope_share});
      const WideDoubles factor = WideDoubles::of(scale);  // as ShiftedBackward has them
      slopes = {factor * slopes.mean_dy - less.mean_dy, factor * slopes.slope - less.slope};
    }
    part.store(low.floats(), plan.constant(b.workspace, kLow) + c);
    part.store(scale, plan.constant(b.workspace, kScale) + c);
    part.store(slopes.mean_dy.floats(), plan.constant(b.workspace, kMeanDy) + c);
    part.store(slopes.slope.floats(), plan.constant(b.workspace, kSlope) + c);
    if (b.outputs[BackOut::kDgain]) {
      part.store(dgain.floats(), b.outputs[BackOut::kDgain].as<float>() + c);
    }
    if (!b.outputs[BackOut::kDbias]) return;
    const WideDoubles dbias = has_padding(b, plan) ? dy + total(kPaddingDy, c) : dy;
    part.store(dbias.floats(), b.outputs[BackOut::kDbias].as<float>() + c);
  });
}

template <class T>
void backward_write(const Binding& b, const BatchSampler& plan, const Tile& tile) {
  const auto constant = [&](std::size_t kind) { return plan.constant(b.workspace, kind); };
  const CentredBackward<T> in{
      {b.inputs[BackIn::kMean].as<float>(), b.inputs[BackIn::kRstd].as<float>(), constant(kLow)},
      b.inputs[BackIn::kX].as<T>(),
      b.inputs[BackIn::kDy].as<T>(),
      constant(kScale),
      constant(kMeanDy),
      constant(kSlope)};
  const ResultRows dx(b, tile.run_length());
  plan.attrs.has_penalty() ? write_centred_gradient(tile, mask_of(b), ShiftedBackward<T>{in}, dx)
                           : write_centred_gradient(tile, mask_of(b), in, dx);
}

// In evaluation dx = scale * dy.
template <class T>
void backward_scale(const Binding& b, const BatchSampler& plan, const Tile& tile) {
  const float* scale = plan.constant(b.workspace, kScale);
  const T* dy = b.inputs[BackIn::kDy].as<T>();
  const ResultRows dx(b, tile.run_length());
  for_tile(
      tile, [=](auto reader, std::size_t c) KEEL_LOOP_BODY { return reader.load(scale + c); },
      [=](auto part, Floats scale_of_channel, std::size_t i)
          KEEL_LOOP_BODY { dx.put(part, hn::Mul(scale_of_channel, part.load(dy + i)), i); });
  clear_left_out(tile, mask_of(b), dx);
}

void backward(const Binding& b, const BatchSampler& plan) {
  run_columns(
      plan.blocks,
      [&](std::size_t block, const Tile& tile) HWY_ATTR { backward_sums(b, plan, block, tile); },
      [&](const Tile& tile) HWY_ATTR { backward_statistics(b, plan, tile); },
      [&](const Tile& tile) HWY_ATTR {
        with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
          plan.attrs.training ? backward_write<T>(b, plan, tile) : backward_scale<T>(b, plan, tile);
        });
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
      {column_blocks(sizes, 1, 2), 2, kForwardConstants, context.has(In::kMoments)},
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
                           attrs.counts_padding() ? kPaddingDy + 1 : kPaddingDy, kBackwardConstants,
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

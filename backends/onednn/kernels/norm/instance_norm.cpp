// Instance norm of sequences is made of the parts of column norms, with each sample as a tensor of
// its own. A task takes whole samples, forms their sums and writes them while they are in the
// caches.
#include "src/ops/norm/instance_norm.h"

#include "backends/onednn/column_plan.h"
#include "backends/onednn/kernels/kernels.h"

#ifndef KEEL_INSTANCE_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_INSTANCE_NORM_PLAN
namespace keel::onednn {
namespace {

using In = InstanceNormInput;
using Out = InstanceNormOutput;
using BackIn = InstanceNormBackwardInput;
using BackOut = InstanceNormGradient;

// The values that a block keeps of a channel, each as wide as a double: the moments or sums of the
// current sample, in the backward the sums over all of the block's samples, then the constants, in
// float, of the current sample.
enum Forward : std::size_t { kMoments, kFactor = kMoments + 2, kShift, kForwardKinds };
enum Backward : std::size_t {
  kSums,
  kDgain = kSums + 3,
  kDbias,
  kBackwardLow,
  kScale,
  kMeanDy,
  kSlope,
  kBackwardKinds
};

struct SequencePlan : ColumnPlan {
  SequenceSizes sizes;
  double eps;

  float* floats(const Binding& b, std::size_t block, std::size_t kind) const {
    return reinterpret_cast<float*>(sum(b.workspace, block, kind));
  }
};

// Calls body(tile, i) for the samples i of a block; a sample's channels begin at 0.
template <class Body>
void for_samples(const Tile& block, const SequenceSizes& sizes, const Body& body) {
  Tile tile = block;
  tile.rows = std::size_t(sizes.steps);
  for (std::size_t row = 0; row < block.rows; row += tile.rows) {
    body(tile, tile.offset / (tile.rows * tile.stride));
    tile.offset += tile.rows * tile.stride;
  }
}

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/instance_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

template <class T>
void forward_block(const Binding& b, const SequencePlan& plan, std::size_t block,
                   const Tile& samples) {
  const RowMask mask = b.inputs[In::kMask].as<std::uint8_t>();
  const T* x = b.inputs[In::kX].as<T>();
  const ChannelMoments moments = moments_at(plan, {b.workspace, block, kMoments}, 0);
  float* const factors = plan.floats(b, block, kFactor);
  float* const shifts = plan.floats(b, block, kShift);
  const float *gains = b.inputs[In::kGain].as<float>(), *biases = b.inputs[In::kBias].as<float>();
  const WideDoubles eps = WideDoubles::all(plan.eps);
  for_samples(samples, plan.sizes, [&](const Tile& tile, std::size_t i) HWY_ATTR {
    float* const mean = b.outputs[Out::kMean].as<float>() + i * tile.channels;
    float* const rstd = b.outputs[Out::kRstd].as<float>() + i * tile.channels;
    tile_moments(tile, mask, x, moments);
    const double n = kept_elements(tile, mask);
    const WideDoubles share = WideDoubles::all(n > 0 ? 1 / n : 0);
    for_lanes(tile.channels, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
      const WideDoubles exact = WideDoubles::load(moments.mean + c);
      const Floats high = exact.floats(), low = (exact - WideDoubles::of(high)).floats();
      const Floats scale = reciprocal_sqrt(WideDoubles::load(moments.squares + c) * share + eps);
      const Floats factor = gains ? hn::Mul(scale, part.load(gains + c)) : scale;
      part.store(high, mean + c);
      part.store(scale, rstd + c);
      part.store(factor, factors + c);
      part.store(hn::NegMulAdd(low, factor, biases ? part.load(biases + c) : zero()), shifts + c);
    });
    const ResultRows y(b, tile.run_length());
    write_centred(tile, CentredForward<T>{x, mean, factors, shifts}, y);
    clear_left_out(tile, mask, y);
  });
}

void forward(const Binding& b, const SequencePlan& plan) {
  with_elements(b.inputs[In::kX], [&]<class T>(T) HWY_ATTR {
    plan.blocks.run([&](std::size_t block, const Tile& samples)
                        HWY_ATTR { forward_block<T>(b, plan, block, samples); });
  });
}

// The sums of a sample become the constants of its dx and are added to those of the block.
void sample_statistics(const Binding& b, const SequencePlan& plan, std::size_t block,
                       const float* rstd, double n) {
  const ChannelSums sums = sums_at(plan, {b.workspace, block, kSums}, 0);
  const auto constant = [&](std::size_t kind) { return plan.floats(b, block, kind); };
  const WideDoubles share = WideDoubles::all(n > 0 ? 1 / n : 0);
  const float* gain = b.inputs[BackIn::kGain].as<float>();
  for_lanes(std::size_t(plan.sizes.channels), [&](auto part, std::size_t c) KEEL_LOOP_BODY {
    const WideDoubles low = WideDoubles::load(sums.xhat + c) * share;
    const WideDoubles dy = WideDoubles::load(sums.dy + c);
    const WideDoubles dy_xhat = WideDoubles::load(sums.dy_xhat + c) - low * dy;
    const Floats factor = part.load(rstd + c);
    part.store(low.floats(), constant(kBackwardLow) + c);
    part.store(gain ? hn::Mul(factor, part.load(gain + c)) : factor, constant(kScale) + c);
    part.store((dy * share).floats(), constant(kMeanDy) + c);
    part.store((dy_xhat * share).floats(), constant(kSlope) + c);
    add_to(plan.sum(b.workspace, block, kDgain) + c, dy_xhat);
    add_to(plan.sum(b.workspace, block, kDbias) + c, dy);
  });
}

template <class T>
void backward_block(const Binding& b, const SequencePlan& plan, std::size_t block,
                    const Tile& samples) {
  const RowMask mask = b.inputs[BackIn::kMask].as<std::uint8_t>();
  const T *x = b.inputs[BackIn::kX].as<T>(), *dy = b.inputs[BackIn::kDy].as<T>();
  const auto constant = [&](std::size_t kind) { return plan.floats(b, block, kind); };
  for (std::size_t kind : {kDgain, kDbias}) {
    std::fill_n(plan.sum(b.workspace, block, kind), plan.stride(), 0.0);
  }
  for_samples(samples, plan.sizes, [&](const Tile& tile, std::size_t i) HWY_ATTR {
    const float* mean = b.inputs[BackIn::kMean].as<float>() + i * tile.channels;
    const float* rstd = b.inputs[BackIn::kRstd].as<float>() + i * tile.channels;
    tile_sums(tile, mask, SavedChannels<T>{x, dy, mean, rstd},
              sums_at(plan, {b.workspace, block, kSums}, 0));
    sample_statistics(b, plan, block, rstd, kept_elements(tile, mask));
    write_centred_gradient(tile, mask,
                           CentredBackward<T>{{mean, rstd, constant(kBackwardLow)},
                                              x,
                                              dy,
                                              constant(kScale),
                                              constant(kMeanDy),
                                              constant(kSlope)},
                           ResultRows(b, tile.run_length()));
  });
}

void backward(const Binding& b, const SequencePlan& plan) {
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    plan.blocks.run([&](std::size_t block, const Tile& samples)
                        HWY_ATTR { backward_block<T>(b, plan, block, samples); });
  });
  for_lanes(std::size_t(plan.sizes.channels), [&](auto part, std::size_t c) KEEL_LOOP_BODY {
    const auto store = [&](Backward kind, const TensorRef& to) HWY_ATTR {
      if (to) part.store(sum_of_blocks(plan, b.workspace, kind, c).floats(), to.as<float>() + c);
    };
    store(kDgain, b.outputs[BackOut::kDgain]);
    store(kDbias, b.outputs[BackOut::kDbias]);
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

SequencePlan plan_of(const SequenceSizes& s, double eps, std::size_t kinds) {
  return {{sample_blocks(s.samples, s.steps, s.channels, std::int64_t(kinds)), kinds, 0}, s, eps};
}

}  // namespace

Prepared prepare_instance_norm(const NodeContext& context) {
  const SequencePlan plan = plan_of(sequence_sizes(context.input(In::kX).shape),
                                    context.attrs<InstanceNormAttrs>().eps, kForwardKinds);
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(forward)
        (b, plan);
      },
      plan.bytes());
}

Prepared prepare_instance_norm_backward(const NodeContext& context) {
  const SequencePlan plan = plan_of(sequence_sizes(context.input(BackIn::kX).shape),
                                    context.attrs<InstanceNormBackwardAttrs>().eps, kBackwardKinds);
  return kernel_of(
      [=](const Binding& b) {
        HWY_DYNAMIC_DISPATCH(backward)
        (b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

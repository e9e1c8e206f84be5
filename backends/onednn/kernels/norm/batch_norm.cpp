// Batch norm: sums over slabs of the tensor, then one more pass over it. A panel of channels that
// stays in L2 goes through both in one task.
#include "src/ops/norm/batch_norm.h"

#include "backends/onednn/column_blocks.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/streaming.h"

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

// The workspace: kinds of sums in double for every block, then kinds of constants in float, each a
// row of channels padded to whole registers.
struct ChannelPlan {
  BatchNormAttrs attrs;
  ColumnBlocks blocks;
  std::size_t sums, constants;

  std::size_t stride() const { return (std::size_t(blocks.sizes.channels) + 15) / 16 * 16; }
  double* sum(void* workspace, std::size_t block, std::size_t kind) const {
    return static_cast<double*>(workspace) + (block * sums + kind) * stride();
  }
  float* constant(void* workspace, std::size_t kind) const {
    return reinterpret_cast<float*>(sum(workspace, std::size_t(blocks.blocks), 0)) +
           kind * stride();
  }
  std::int64_t bytes() const {
    const std::size_t doubles = std::size_t(blocks.blocks) * sums;
    return std::int64_t(stride() * (doubles * sizeof(double) + constants * sizeof(float)));
  }
  // What the sum of squares is divided by.
  double variance_count() const { return double(blocks.sizes.count()) - (attrs.unbiased ? 1 : 0); }
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/batch_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/column_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

ChannelMoments moments_at(const Binding& b, const ChannelPlan& plan, std::size_t block,
                          std::size_t channel) {
  return {plan.sum(b.workspace, block, 0) + channel, plan.sum(b.workspace, block, 1) + channel};
}

void forward_sums(const Binding& b, const ChannelPlan& plan, std::size_t block, const Slab& slab) {
  slab_moments(slab, b.inputs[0].as<float>(), moments_at(b, plan, block, slab.first));
}

// running <- keep * running + (1 - keep) * batch, for a register's worth of channels.
template <class Part>
void blend(Part part, const float* before, const WideDoubles& batch, double keep, float* after) {
  const WideDoubles kept = WideDoubles::of(part.load(before)) * WideDoubles::all(keep);
  part.store((kept + batch * WideDoubles::all(1 - keep)).floats(), after);
}

// From the moments of all blocks: mean, rstd, what the float mean lacks, the running statistics.
void forward_statistics(const Binding& b, const ChannelPlan& plan, const Slab& slab) {
  const ChannelMoments total = moments_at(b, plan, 0, slab.first);
  const double rows = double(plan.blocks.block * plan.blocks.sizes.inner);
  for (std::size_t block = 1; block < std::size_t(plan.blocks.blocks); ++block) {
    const ChannelMoments more = moments_at(b, plan, block, slab.first);
    const double seen = rows * double(block), all = double(plan.blocks.sizes.count());
    const MergeWeights weights(seen, std::min(rows, all - seen));
    for_lanes(slab.channels, [&](auto, std::size_t c) HWY_ATTR {
      merge(total, c, weights,
            {WideDoubles::load(more.mean + c), WideDoubles::load(more.squares + c)});
    });
  }
  const BatchNormAttrs& attrs = plan.attrs;
  const double all = double(plan.blocks.sizes.count());
  const WideDoubles eps = WideDoubles::all(attrs.eps);
  const WideDoubles share = WideDoubles::all(1 / plan.variance_count());
  const WideDoubles running_share = WideDoubles::all(1 / (all - (attrs.running_unbiased ? 1 : 0)));
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

// Evaluation: the running statistics instead.
void running_statistics(const Binding& b, const ChannelPlan& plan, const Slab& slab) {
  const WideDoubles eps = WideDoubles::all(plan.attrs.eps);
  for_lanes(slab.channels, [&](auto part, std::size_t i) HWY_ATTR {
    const std::size_t c = slab.first + i;
    const WideDoubles variance = WideDoubles::of(part.load(b.inputs[4].as<float>() + c));
    part.store(part.load(b.inputs[3].as<float>() + c), b.outputs[1].as<float>() + c);
    part.store(reciprocal_sqrt(variance + eps), b.outputs[2].as<float>() + c);
    part.store(zero(), plan.constant(b.workspace, kLow) + c);
  });
}

struct Normalize {
  Standardize xhat;
  Floats gain, bias;
  HWY_INLINE Floats operator()(Floats x) const { return hn::MulAdd(xhat(x), gain, bias); }
};

void forward_write(const Binding& b, const ChannelPlan& plan, const Slab& slab) {
  const float *mean = b.outputs[1].as<float>(), *rstd = b.outputs[2].as<float>();
  const float *low = plan.constant(b.workspace, kLow), *x = b.inputs[0].as<float>();
  const float *gain = b.inputs[1].as<float>(), *bias = b.inputs[2].as<float>();
  float* y = b.outputs[0].as<float>();
  for_slab(
      slab,
      [=](auto reader, std::size_t c) HWY_ATTR {
        return Normalize{{reader.load(mean + c), reader.load(rstd + c), reader.load(low + c)},
                         gain ? reader.load(gain + c) : splat(1),
                         bias ? reader.load(bias + c) : zero()};
      },
      [=, stride = slab.stride, streamed = is_streamed(b.outputs[0], slab.stride)](
          auto part, const Normalize& normalize, auto rows, std::size_t i) HWY_ATTR {
        Floats v[rows()];
        for (std::size_t k = 0; k < rows(); ++k) v[k] = part.load(x + i + k * stride);
        for (std::size_t k = 0; k < rows(); ++k)
          write(part, normalize(v[k]), y + i + k * stride, streamed);
      });
}

ChannelSums sums_at(const Binding& b, const ChannelPlan& plan, std::size_t block,
                    std::size_t channel) {
  return {plan.sum(b.workspace, block, 0) + channel, plan.sum(b.workspace, block, 1) + channel,
          plan.sum(b.workspace, block, 2) + channel};
}

void backward_sums(const Binding& b, const ChannelPlan& plan, std::size_t block, const Slab& slab) {
  slab_sums(slab,
            {b.inputs[0].as<float>(), b.inputs[4].as<float>(), b.inputs[2].as<float>(),
             b.inputs[3].as<float>()},
            sums_at(b, plan, block, slab.first));
}

// From the sums of all blocks: dgain, dbias and the constants of dx.
void backward_statistics(const Binding& b, const ChannelPlan& plan, const Slab& slab) {
  const double share = plan.attrs.training ? 1 / double(plan.blocks.sizes.count()) : 0;
  const WideDoubles mean_share = WideDoubles::all(share);
  const WideDoubles slope_share =
      WideDoubles::all(plan.attrs.training ? 1 / plan.variance_count() : 0);
  const auto total = [&](std::size_t kind, std::size_t c) HWY_ATTR {
    WideDoubles sum = WideDoubles::load(plan.sum(b.workspace, 0, kind) + c);
    for (std::size_t block = 1; block < std::size_t(plan.blocks.blocks); ++block) {
      sum = sum + WideDoubles::load(plan.sum(b.workspace, block, kind) + c);
    }
    return sum;
  };
  for_lanes(slab.channels, [&](auto part, std::size_t i) HWY_ATTR {
    const std::size_t c = slab.first + i;
    const WideDoubles low = total(0, c) * mean_share, dbias = total(1, c);
    const WideDoubles dgain = total(2, c) - low * dbias;
    const Floats rstd = part.load(b.inputs[3].as<float>() + c);
    const float* gain = b.inputs[1].as<float>();
    part.store(low.floats(), plan.constant(b.workspace, kLow) + c);
    part.store(gain ? hn::Mul(rstd, part.load(gain + c)) : rstd,
               plan.constant(b.workspace, kScale) + c);
    part.store((dbias * mean_share).floats(), plan.constant(b.workspace, kMeanDy) + c);
    part.store((dgain * slope_share).floats(), plan.constant(b.workspace, kSlope) + c);
    if (b.outputs[1]) part.store(dgain.floats(), b.outputs[1].as<float>() + c);
    if (b.outputs[2]) part.store(dbias.floats(), b.outputs[2].as<float>() + c);
  });
}

// dx = scale * (dy - mean_dy - xhat * slope), scale = rstd * gain
struct ChannelGradient {
  Standardize xhat;
  Floats scale, mean_dy, slope;
  HWY_INLINE Floats dx(Floats x, Floats dy) const {
    return hn::Mul(scale, hn::NegMulAdd(xhat(x), slope, hn::Sub(dy, mean_dy)));
  }
};

void backward_write(const Binding& b, const ChannelPlan& plan, const Slab& slab) {
  const float *mean = b.inputs[2].as<float>(), *rstd = b.inputs[3].as<float>();
  const float *low = plan.constant(b.workspace, kLow), *scale = plan.constant(b.workspace, kScale);
  const float* mean_dy = plan.constant(b.workspace, kMeanDy);
  const float* slope = plan.constant(b.workspace, kSlope);
  const float *x = b.inputs[0].as<float>(), *dy = b.inputs[4].as<float>();
  float* dx = b.outputs[0].as<float>();
  for_slab(
      slab,
      [=](auto reader, std::size_t c) HWY_ATTR {
        return ChannelGradient{{reader.load(mean + c), reader.load(rstd + c), reader.load(low + c)},
                               reader.load(scale + c),
                               reader.load(mean_dy + c),
                               reader.load(slope + c)};
      },
      [=, stride = slab.stride, streamed = is_streamed(b.outputs[0], slab.stride)](
          auto part, const ChannelGradient& gradient, auto rows, std::size_t i) HWY_ATTR {
        Floats v[rows()];
        for (std::size_t k = 0; k < rows(); ++k) {
          v[k] = gradient.dx(part.load(x + i + k * stride), part.load(dy + i + k * stride));
        }
        for (std::size_t k = 0; k < rows(); ++k) write(part, v[k], dx + i + k * stride, streamed);
      });
}

// Evaluation: dx = scale * dy.
void backward_scale(const Binding& b, const ChannelPlan& plan, const Slab& slab) {
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
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

HWY_EXPORT(forward_sums);
HWY_EXPORT(forward_statistics);
HWY_EXPORT(running_statistics);
HWY_EXPORT(forward_write);
HWY_EXPORT(backward_sums);
HWY_EXPORT(backward_statistics);
HWY_EXPORT(backward_write);
HWY_EXPORT(backward_scale);

namespace {

using Step = void (*)(const Binding&, const ChannelPlan&, const Slab&);
using SumStep = void (*)(const Binding&, const ChannelPlan&, std::size_t, const Slab&);

// Sums, statistics and the final pass: in one task a panel, or with all threads one after the
// other.
struct Steps {
  SumStep sums;
  Step statistics, write;

  void run(const Binding& b, const ChannelPlan& plan) const {
    const ColumnBlocks& blocks = plan.blocks;
    if (blocks.resident()) {
      return blocks.run([&](std::size_t block, const Slab& slab) {
        if (sums) sums(b, plan, block, slab);
        statistics(b, plan, slab);
        write(b, plan, slab);
      });
    }
    if (sums) blocks.run([&](std::size_t block, const Slab& slab) { sums(b, plan, block, slab); });
    for (std::int64_t p = 0; p < blocks.panels; ++p) statistics(b, plan, blocks.slab(0, p));
    blocks.run([&](std::size_t, const Slab& slab) { write(b, plan, slab); });
  }
};

}  // namespace

Prepared prepare_batch_norm(const NodeContext& context) {
  const auto attrs = context.attrs<BatchNormAttrs>();
  const ChannelPlan plan{attrs, column_blocks(column_sizes(context.input(0).shape), 1, 2), 2,
                         kForwardConstants};
  return kernel_of(
      [=](const Binding& b) {
        const Steps training{HWY_DYNAMIC_DISPATCH(forward_sums),
                             HWY_DYNAMIC_DISPATCH(forward_statistics),
                             HWY_DYNAMIC_DISPATCH(forward_write)};
        const Steps evaluation{nullptr, HWY_DYNAMIC_DISPATCH(running_statistics),
                               HWY_DYNAMIC_DISPATCH(forward_write)};
        (attrs.training ? training : evaluation).run(b, plan);
      },
      plan.bytes());
}

Prepared prepare_batch_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<BatchNormAttrs>();
  const ChannelPlan plan{attrs, column_blocks(column_sizes(context.input(0).shape), 2, 3), 3,
                         kBackwardConstants};
  return kernel_of(
      [=](const Binding& b) {
        const Steps steps{HWY_DYNAMIC_DISPATCH(backward_sums),
                          HWY_DYNAMIC_DISPATCH(backward_statistics),
                          attrs.training ? HWY_DYNAMIC_DISPATCH(backward_write)
                                         : HWY_DYNAMIC_DISPATCH(backward_scale)};
        steps.run(b, plan);
      },
      plan.bytes());
}

}  // namespace keel::onednn
#endif

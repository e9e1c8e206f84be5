// Group norm takes a group as a row, in passes over data that stays in L1. Tokens have a gain for
// each element of a group, images one for each of its channels.
#include "src/ops/norm/group_norm.h"

#include <optional>
#include <utility>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/row_blocks.h"
#include "backends/onednn/streaming.h"

#ifndef KEEL_GROUP_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_GROUP_NORM_PLAN
namespace keel::onednn {
namespace {

using In = GroupNormInput;
using BackIn = GroupNormBackwardInput;
using BackOut = GroupNormGradient;

struct Groups {
  NormStatistic statistic;
  std::size_t count, channels, inner;  // groups of a sample; channels of a group

  Groups(const NormStatistic& of, const GroupSizes& s)
      : statistic(of),
        count(std::size_t(s.groups)),
        channels(std::size_t(s.channels)),
        inner(std::size_t(s.inner)) {}
  std::size_t width() const { return channels * inner; }
  // The first channel of a row of the matrix of groups. A division would slow short rows down.
  std::size_t channel(std::size_t row) const { return count == 1 ? 0 : row % count * channels; }
  // How many elements one loop over registers writes; the next loop goes on right behind them.
  std::size_t run() const { return inner > 1 ? inner : channels; }
  double variance_count() const {
    return keel::variance_count(std::int64_t(width()), statistic.unbiased);
  }
};

enum Sums : std::size_t { kGain, kBias, kSums };

// The workspace holds sums for every block, then one more float a channel, in rows as wide as
// theirs.
struct BackwardPlan {
  Groups groups;
  ColumnSums sums;

  float* extra(void* workspace, std::size_t block) const {
    return sums.run(workspace, sums.blocks) + block * sums.stride;
  }
  std::int64_t bytes() const {
    return sums.bytes() + std::int64_t(sums.blocks * sums.stride * sizeof(float));
  }
};

}  // namespace
}  // namespace keel::onednn
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/onednn/kernels/norm/group_norm.cpp"
#include <hwy/foreach_target.h>

#include "backends/onednn/simd/centred_rows-inl.h"
#include "backends/onednn/simd/column_sums-inl.h"
#include "backends/onednn/simd/row_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {
namespace {

const float* offset(const TensorRef& parameter, std::size_t channel) {
  return parameter ? parameter.as<float>() + channel : nullptr;
}

// Writes y of one group of an image, which begins at element `at`.
void write_channels(const Groups& groups, const CentredRows& rows, const Standardize xhat,
                    const RowAffine& affine, std::size_t at) {
  const float* const x = rows.b.inputs[In::kX].as<float>();
  const ResultRows y = rows.y;
  for (std::size_t c = 0; c < groups.channels; ++c, at += groups.inner) {
    const Floats gain = splat(affine.gain ? affine.gain[c] : 1);
    const Floats bias = splat(affine.bias ? affine.bias[c] : 0);
    for_lanes(groups.inner, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      y.put(part, hn::MulAdd(xhat(part.load(x + at + i)), gain, bias), at + i);
    });
  }
}

// Writes y = (x - mean) * rstd * gain + bias of a range of groups and saves mean and rstd.
void forward(const Binding& b, const Groups& groups, const RowRange& range) {
  const CentredRows rows{b, groups.statistic, range.width, ResultRows(b, groups.run())};
  const float* const x = b.inputs[In::kX].as<float>();
  const auto write_row = [&](std::size_t row, const Standardize& xhat) KEEL_LOOP_BODY {
    const std::size_t channel = groups.channel(row), at = row * range.width;
    const RowAffine affine{offset(b.inputs[In::kGain], channel),
                           offset(b.inputs[In::kBias], channel)};
    if (groups.inner > 1) return write_channels(groups, rows, xhat, affine, at);
    for_lanes(range.width, [=, y = rows.y](auto part, std::size_t i) KEEL_LOOP_BODY {
      y.put(part, affine.apply(part, xhat(part.load(x + at + i)), i), at + i);
    });
  };
  standardize_rows(rows, range, write_row);
}

// Returns what the backward reads of one group, and prefetches what it will write.
SavedRow saved_row(const Binding& b, const Groups& groups, std::size_t row) {
  const std::size_t width = groups.width();
  if (!is_streamed(b, groups.run())) {
    prefetch_row(b.outputs[BackOut::kDx].as<float>() + row * width, width);
  }
  return {b.inputs[BackIn::kX].as<float>() + row * width,
          b.inputs[BackIn::kDy].as<float>() + row * width, b.inputs[BackIn::kMean].as<float>()[row],
          b.inputs[BackIn::kRstd].as<float>()[row], width};
}

double slope_factor_of(const Groups& groups, const SavedRow& row) {
  return double(row.n) / groups.variance_count() * slope_factor(groups.statistic, row.rstd);
}

RowGradient token_gradient(const Binding& b, const Groups& groups, std::size_t row,
                           const float* gain) {
  const SavedRow saved = saved_row(b, groups, row);
  return row_gradient(saved, RowAffine{gain, nullptr}, slope_factor_of(groups, saved));
}

// Writes dx of kRows rows of tokens from `sample` on, group by group, and adds their share of dgain
// and dbias to the sums.
template <std::size_t kRows>
void backward_tokens(const Binding& b, const Groups& groups, std::size_t sample, BlockSums* sums) {
  const float *x = b.inputs[BackIn::kX].as<float>(), *dy = b.inputs[BackIn::kDy].as<float>();
  float* dx = b.outputs[BackOut::kDx].as<float>();
  const std::size_t width = groups.width();
  for (std::size_t g = 0; g < groups.count; ++g) {
    const std::size_t row = sample * groups.count + g, first = row * width, column = g * width;
    const float* gain = offset(b.inputs[BackIn::kGain], column);
    const GradientRows rows{.x = x + first,
                            .dy = dy + first,
                            .dx = dx + first,
                            .width = width,
                            .skip = (groups.count - 1) * width,
                            .streamed = is_streamed(b, groups.run())};
    float *dgain = sums ? sums->run(kGain) + column : nullptr,
          *dbias = sums ? sums->run(kBias) + column : nullptr;
    [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
      // Braces keep the order of the rows, which the prefetcher of the processor relies on.
      const RowGradient of_row[] = {token_gradient(b, groups, row + kRow * groups.count, gain)...};
      write_gradients(rows, {gain, nullptr}, dgain, dbias, of_row[kRow]...);
    }
    (std::make_index_sequence<kRows>());
  }
  if (sums) sums->end_addition();
}

// What the channels of one group of an image add to dgain and dbias, unless null.
struct GroupSums {
  float *dgain, *dbias;
  float* dy;  // room for the sums of dy of this group alone (channels)
};

RowGradient image_gradient(const Groups& groups, const SavedRow& row, const float* gain,
                           const GroupSums& sums) {
  RowSums total{0, 0, 0};
  for (std::size_t c = 0; c < groups.channels; ++c) {
    const std::size_t first = c * groups.inner;
    const RowSums of_channel =
        row_sums({row.x + first, row.dy + first, row.mean, row.rstd, groups.inner}, {});
    const double gain_c = gain ? gain[c] : 1;
    total.xhat += of_channel.xhat;
    total.g += gain_c * of_channel.g;
    total.g_xhat += gain_c * of_channel.g_xhat;
    if (sums.dgain == nullptr) continue;
    sums.dgain[c] += float(of_channel.g_xhat);
    sums.dbias[c] += float(of_channel.g);
    sums.dy[c] = float(of_channel.g);
  }
  if (sums.dgain != nullptr) {
    // The rounding error of the saved mean is taken back, as in row_gradient.
    const float low = float(total.xhat / double(row.n));
    for (std::size_t c = 0; c < groups.channels; ++c) sums.dgain[c] -= low * sums.dy[c];
  }
  return row_gradient(row, total, slope_factor_of(groups, row));
}

// Writes dx of one group of an image. x, dy, dx (channels, inner).
void write_image(const Groups& groups, const GradientRows& row, const float* gain,
                 const RowGradient gradient) {
  const std::size_t inner = groups.inner;
  const float *x = row.x, *dy = row.dy;
  float* dx = row.dx;
  for (std::size_t c = 0; c < groups.channels; ++c, x += inner, dy += inner, dx += inner) {
    const Floats gain_c = splat(gain ? gain[c] : 1);
    for_lanes(inner, [=, streamed = row.streamed](auto part, std::size_t i) KEEL_LOOP_BODY {
      const Floats xhat = gradient.xhat(part.load(x + i));
      write(part, gradient.dx(hn::Mul(part.load(dy + i), gain_c), xhat), dx + i, streamed);
    });
  }
}

void backward_image(const Binding& b, const BackwardPlan& plan, std::size_t sample, BlockSums* sums,
                    float* extra) {
  const Groups& groups = plan.groups;
  const std::size_t width = groups.width();
  for (std::size_t g = 0; g < groups.count; ++g) {
    const std::size_t row = sample * groups.count + g, channel = g * groups.channels;
    const float* gain = offset(b.inputs[BackIn::kGain], channel);
    const SavedRow saved = saved_row(b, groups, row);
    const GroupSums of_group{sums ? sums->run(kGain) + channel : nullptr,
                             sums ? sums->run(kBias) + channel : nullptr, extra};
    const RowGradient gradient = image_gradient(groups, saved, gain, of_group);
    const GradientRows rows{.x = saved.x,
                            .dy = saved.dy,
                            .dx = b.outputs[BackOut::kDx].as<float>() + row * width,
                            .width = width,
                            .streamed = is_streamed(b, groups.run())};
    write_image(groups, rows, gain, gradient);
  }
  if (sums) sums->end_addition();
}

void backward(const Binding& b, const BackwardPlan& plan, std::size_t block,
              const RowRange& range) {
  const bool has_sums = b.outputs[BackOut::kDgain] || b.outputs[BackOut::kDbias];
  std::optional<BlockSums> sums;
  if (has_sums) sums.emplace(plan.sums, b.workspace, block);
  BlockSums* const added = has_sums ? &*sums : nullptr;
  if (plan.groups.inner > 1) {
    for (std::size_t sample = range.first; sample < range.last; ++sample) {
      backward_image(b, plan, sample, added, added ? plan.extra(b.workspace, block) : nullptr);
    }
  } else {
    for_row_groups(range, [&](auto rows, std::size_t sample)
                              HWY_ATTR { backward_tokens<rows()>(b, plan.groups, sample, added); });
  }
  if (has_sums) sums->end_run();
}

// Adds the sums of all blocks up to dgain and dbias (channels), of which either may be absent.
void add_up(const Binding& b, const BackwardPlan& plan) {
  const std::size_t channels = plan.groups.count * plan.groups.channels;
  const auto store = [&](Sums kind, const TensorRef& out) HWY_ATTR {
    if (out) sum_over_blocks(plan.sums, b.workspace, kind, out.as<float>(), channels);
  };
  store(kGain, b.outputs[BackOut::kDgain]);
  store(kBias, b.outputs[BackOut::kDbias]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace keel::onednn {

namespace {

// Blocks of samples that leave sums have at least 128 KiB each; there are at most 32 of them, with
// at most 64 Ki sums in all. Without sums samples are independent rows.
RowBlocks blocks_of_samples(const GroupSizes& s, bool has_sums) {
  constexpr std::int64_t kElements = 32 * 1024, kBlocks = 32, kMostSums = 64 * 1024;
  const std::int64_t sums = kSums * s.groups * s.channels, width = s.groups * s.width();
  if (!has_sums) return independent_row_blocks({s.samples, width});
  const std::int64_t most = std::clamp<std::int64_t>(kMostSums / sums, 1, kBlocks);
  const std::int64_t least = std::max<std::int64_t>(1, kElements / width);
  return row_blocks({s.samples, width}, std::max(least, (s.samples + most - 1) / most));
}

}  // namespace

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);

Prepared prepare_group_norm(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes sizes = group_sizes(context.input(In::kX).shape, attrs.groups);
  const Groups groups(attrs.statistic(), sizes);
  const RowBlocks blocks = independent_row_blocks({sizes.samples * sizes.groups, sizes.width()});
  return kernel_of([=](const Binding& b) {
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(b, groups, range);
    });
  });
}

Prepared prepare_group_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormBackwardAttrs>();
  const GroupSizes sizes = group_sizes(context.input(BackIn::kX).shape, attrs.groups);
  const std::int64_t channels = sizes.groups * sizes.channels;
  const bool has_sums =
      context.output(BackOut::kDgain).bytes() + context.output(BackOut::kDbias).bytes() > 0;
  const RowBlocks blocks = blocks_of_samples(sizes, has_sums);
  const BackwardPlan plan{Groups(attrs.statistic(), sizes),
                          ColumnSums(kSums, channels, blocks.count)};
  const auto run = [=](const Binding& b) {
    blocks.run([&](std::size_t block, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, plan, block, range);
    });
    HWY_DYNAMIC_DISPATCH(add_up)(b, plan);
  };
  return kernel_of(run, has_sums ? plan.bytes() : 0);
}

}  // namespace keel::onednn
#endif

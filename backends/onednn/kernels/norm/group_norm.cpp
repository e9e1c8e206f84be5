// Group norm takes a group as a row, in passes over data that stays in L1. Tokens have a gain for
// each element of a group, images one for each of its channels.
#include "src/ops/norm/group_norm.h"

#include <optional>
#include <utility>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/norm/group_norm_plan.h"
#include "backends/onednn/kernels/norm/small_groups.h"
#include "backends/onednn/streaming.h"

#ifndef KEEL_GROUP_NORM_PLAN  // this file is compiled once per instruction set
#define KEEL_GROUP_NORM_PLAN
namespace keel::onednn {
namespace {

using In = GroupNormInput;
using Out = GroupNormOutput;
using BackIn = GroupNormBackwardInput;
using BackOut = GroupNormGradient;

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

const float* offset(const float* parameter, std::size_t channel) {
  return parameter ? parameter + channel : nullptr;
}

// Writes y of one group of an image, which begins at element `at`.
template <class T, class Xhat>
void write_channels(const Groups& groups, const CentredRows& rows, const Xhat xhat,
                    const RowAffine& affine, std::size_t at) {
  const T* const x = rows.b.inputs[In::kX].as<T>();
  const ResultRows y = rows.y;
  for (std::size_t c = 0; c < groups.channels; ++c, at += groups.inner) {
    const Floats gain = splat(affine.gain ? affine.gain[c] : 1);
    const Floats bias = splat(affine.bias ? affine.bias[c] : 0);
    write_row(y, at, groups.inner, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return hn::MulAdd(xhat(part.load(x + at + i)), gain, bias);
    });
  }
}

template <class T>
void forward_groups(const Binding& b, const Groups& groups, const GroupParameters& parameters,
                    const RowRange& range) {
  const CentredRows rows{b, groups.statistic, range.width, ResultRows(b, groups.run())};
  const T* const x = b.inputs[In::kX].as<T>();
  const auto write_group = [&](std::size_t row, const auto& xhat) KEEL_LOOP_BODY {
    const std::size_t channel = groups.channel(row), at = row * range.width;
    const RowAffine affine{offset(parameters.gain, channel), offset(parameters.bias, channel)};
    if (groups.inner > 1) return write_channels<T>(groups, rows, xhat, affine, at);
    write_row(rows.y, at, range.width, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return affine.apply(part, xhat(part.load(x + at + i)), i);
    });
  };
  standardize_rows<T>(rows, range, write_group);
}

// Writes y = (x - mean) * rstd * gain + bias of a range of groups and saves mean and rstd.
void forward(const Binding& b, const Groups& groups, const GroupParameters& parameters,
             const RowRange& range) {
  with_elements(b.inputs[In::kX],
                [&]<class T>(T) HWY_ATTR { forward_groups<T>(b, groups, parameters, range); });
}

// Returns what the backward reads of one group, and prefetches what it will write.
template <class T>
SavedRow<T> saved_row(const Binding& b, const Groups& groups, std::size_t row) {
  const std::size_t width = groups.width();
  ResultRows(b, groups.run()).prefetch(row * width, width);
  return {b.inputs[BackIn::kX].as<T>() + row * width, b.inputs[BackIn::kDy].as<T>() + row * width,
          b.inputs[BackIn::kMean].as<float>()[row], b.inputs[BackIn::kRstd].as<float>()[row],
          width};
}

double slope_factor_of(const Groups& groups, float rstd) {
  return double(groups.width()) / groups.variance_count() * slope_factor(groups.statistic, rstd);
}

template <class T>
RowGradient token_gradient(const Binding& b, const Groups& groups, std::size_t row,
                           const float* gain) {
  const SavedRow<T> saved = saved_row<T>(b, groups, row);
  return row_gradient(saved, RowAffine{gain, nullptr}, slope_factor_of(groups, saved.rstd));
}

// Writes dx of kRows rows of tokens from `sample` on, group by group, and adds their share of dgain
// and dbias to the sums.
template <class T, std::size_t kRows>
void backward_tokens(const Binding& b, const Groups& groups, const float* gains, std::size_t sample,
                     BlockSums* sums) {
  const T *x = b.inputs[BackIn::kX].as<T>(), *dy = b.inputs[BackIn::kDy].as<T>();
  const ResultRows dx(b, groups.run());
  const std::size_t width = groups.width();
  for (std::size_t g = 0; g < groups.count; ++g) {
    const std::size_t row = sample * groups.count + g, first = row * width, column = g * width;
    const float* gain = offset(gains, column);
    const GradientRows<T> rows{.x = x + first,
                               .dy = dy + first,
                               .dx = dx.from(first),
                               .width = width,
                               .skip = (groups.count - 1) * width};
    float *dgain = sums ? sums->run(kGain) + column : nullptr,
          *dbias = sums ? sums->run(kBias) + column : nullptr;
    [&]<std::size_t... kRow>(std::index_sequence<kRow...>) HWY_ATTR {
      // Braces keep the order of the rows, which the prefetcher of the processor relies on.
      const RowGradient of_row[] = {
          token_gradient<T>(b, groups, row + kRow * groups.count, gain)...};
      write_gradients(rows, {gain, nullptr}, dgain, dbias, of_row[kRow]...);
    }
    (std::make_index_sequence<kRows>());
  }
  if (sums) sums->end_addition();
}

// The terms that the channels of one group of an image add to dgain and dbias, unless null.
struct GroupSums {
  float *dgain, *dbias;
  float* dy;  // room for the sums of dy of only this group (channels)
};

template <class T>
RowGradient image_gradient(const Groups& groups, const SavedRow<T>& row, const float* gain,
                           const GroupSums& sums) {
  RowSums total{0, 0, 0};
  for (std::size_t c = 0; c < groups.channels; ++c) {
    const std::size_t first = c * groups.inner;
    const RowSums of_channel =
        row_sums(SavedRow<T>{row.x + first, row.dy + first, row.mean, row.rstd, groups.inner}, {});
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
  return row_gradient(row, total, slope_factor_of(groups, row.rstd));
}

// Writes dx of one group of an image. x, dy, dx (channels, inner).
template <class T, class Xhat>
void write_image(const Groups& groups, const GradientRows<T>& row, const float* gain,
                 const RowGradientOf<Xhat> gradient) {
  const std::size_t inner = groups.inner;
  const T *x = row.x, *dy = row.dy;
  for (std::size_t c = 0; c < groups.channels; ++c, x += inner, dy += inner) {
    const Floats gain_c = splat(gain ? gain[c] : 1);
    write_row(row.dx, c * inner, inner, [=](auto part, std::size_t i) KEEL_LOOP_BODY {
      return gradient.dx(hn::Mul(part.load(dy + i), gain_c), gradient.xhat(part.load(x + i)));
    });
  }
}

template <class T>
void backward_image(const Binding& b, const GroupBackwardPlan& plan, std::size_t sample,
                    BlockSums* sums, float* extra) {
  const Groups& groups = plan.groups;
  const std::size_t width = groups.width();
  for (std::size_t g = 0; g < groups.count; ++g) {
    const std::size_t row = sample * groups.count + g, channel = g * groups.channels;
    const float* gain = offset(b.inputs[BackIn::kGain].as<float>(), channel);
    const SavedRow<T> saved = saved_row<T>(b, groups, row);
    const GroupSums of_group{sums ? sums->run(kGain) + channel : nullptr,
                             sums ? sums->run(kBias) + channel : nullptr, extra};
    const RowGradient gradient = image_gradient(groups, saved, gain, of_group);
    const GradientRows<T> rows{.x = saved.x,
                               .dy = saved.dy,
                               .dx = ResultRows(b, groups.run()).from(row * width),
                               .width = width};
    is_far(gradient) ? write_image(groups, rows, gain, far(gradient))
                     : write_image(groups, rows, gain, gradient);
  }
  if (sums) sums->end_addition();
}

void backward(const Binding& b, const GroupBackwardPlan& plan, const float* gains,
              std::size_t block, const RowRange& range) {
  const bool has_sums = b.outputs[BackOut::kDgain] || b.outputs[BackOut::kDbias];
  std::optional<BlockSums> sums;
  if (has_sums) sums.emplace(plan.sums, b.workspace, block);
  BlockSums* const added = has_sums ? &*sums : nullptr;
  with_elements(b.inputs[BackIn::kX], [&]<class T>(T) HWY_ATTR {
    if (plan.groups.inner > 1) {
      for (std::size_t sample = range.first; sample < range.last; ++sample) {
        backward_image<T>(b, plan, sample, added, added ? plan.extra(b.workspace, block) : nullptr);
      }
      return;
    }
    for_row_groups(range, [&](auto rows, std::size_t sample) HWY_ATTR {
      backward_tokens<T, rows()>(b, plan.groups, gains, sample, added);
    });
  });
  if (has_sums) sums->end_run();
}

// Adds the sums of all blocks up to dgain and dbias (channels), of which either may be absent.
void add_up(const Binding& b, const GroupBackwardPlan& plan) {
  const std::size_t columns = plan.groups.count * plan.groups.channels;
  const auto store = [&](GroupSumKind kind, const TensorRef& out) HWY_ATTR {
    if (!out) return;
    float* const to = plan.repeats == 1 ? out.as<float>() : plan.extra(b.workspace, 0);
    sum_over_blocks(plan.sums, b.workspace, kind, to, columns);
    if (plan.repeats > 1) fold(to, plan.repeats, out);
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

HWY_EXPORT(forward);
HWY_EXPORT(backward);
HWY_EXPORT(add_up);

Prepared prepare_group_norm(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormAttrs>();
  const GroupSizes given = group_sizes(context.input(In::kX).shape, attrs.groups);
  const std::int64_t repeats = repeats_of(given);
  const GroupSizes sizes = with_repeats(given, repeats);
  if (has_small_groups(sizes)) {
    return prepare_small_groups({attrs.statistic(), sizes}, std::size_t(repeats));
  }
  const Groups groups(attrs.statistic(), sizes);
  const RowBlocks blocks = independent_row_blocks({sizes.samples * sizes.groups, sizes.width()});
  const std::int64_t room = repeats == 1 ? 0 : sizes.groups * sizes.channels;
  const auto run = [=](const Binding& b) {
    float* const repeated = static_cast<float*>(b.workspace);
    const GroupParameters parameters{
        repeat(b.inputs[In::kGain], std::size_t(repeats), repeated),
        repeat(b.inputs[In::kBias], std::size_t(repeats), repeated + room)};
    blocks.run([&](std::size_t, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(forward)(b, groups, parameters, range);
    });
  };
  return kernel_of(run, 2 * room * std::int64_t(sizeof(float)));
}

Prepared prepare_group_norm_backward(const NodeContext& context) {
  const auto attrs = context.attrs<GroupNormBackwardAttrs>();
  const GroupSizes given = group_sizes(context.input(BackIn::kX).shape, attrs.groups);
  const std::int64_t repeats = repeats_of(given);
  const GroupSizes sizes = with_repeats(given, repeats);
  const std::int64_t channels = sizes.groups * sizes.channels;
  const bool has_sums =
      context.output(BackOut::kDgain).bytes() + context.output(BackOut::kDbias).bytes() > 0;
  if (has_small_groups(sizes)) {
    return prepare_small_groups_backward({attrs.statistic(), sizes}, std::size_t(repeats),
                                         has_sums);
  }
  const RowBlocks blocks = blocks_of_samples(sizes, has_sums);
  const GroupBackwardPlan plan{Groups(attrs.statistic(), sizes),
                               ColumnSums(kGroupSumKinds, channels, blocks.count),
                               std::size_t(repeats)};
  const std::int64_t sums = has_sums ? plan.bytes() : 0;
  const auto run = [=](const Binding& b) {
    float* const room = reinterpret_cast<float*>(static_cast<std::byte*>(b.workspace) + sums);
    const float* const gains = repeat(b.inputs[BackIn::kGain], plan.repeats, room);
    blocks.run([&](std::size_t block, const RowRange& range) {
      HWY_DYNAMIC_DISPATCH(backward)(b, plan, gains, block, range);
    });
    HWY_DYNAMIC_DISPATCH(add_up)(b, plan);
  };
  return kernel_of(run, sums + (repeats == 1 ? 0 : channels * std::int64_t(sizeof(float))));
}

}  // namespace keel::onednn
#endif

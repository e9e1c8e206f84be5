// How group norm sees its tensor, and where its parameters and sums lie.
#pragma once

#include <algorithm>
#include <numeric>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/row_blocks.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// The groups of a tensor as rows.
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
  // How many elements one loop over registers writes; the next loop goes on right after them.
  std::size_t run() const { return inner > 1 ? inner : channels; }
  double variance_count() const {
    return keel::variance_count(std::int64_t(width()), statistic.unbiased);
  }
};

// Images of fewer pixels than a register has room for would leave most of it empty in a loop over a
// channel. They are taken as tokens whose gain and bias are repeated for every pixel, unless sums
// for so many columns would leave too few blocks.
inline std::int64_t repeats_of(const GroupSizes& s) {
  constexpr std::int64_t kRegister = 16, kMostColumns = 8 * 1024;
  const bool is_short = s.inner > 1 && s.inner < kRegister;
  return is_short && s.groups * s.width() <= kMostColumns ? s.inner : 1;
}
inline GroupSizes with_repeats(const GroupSizes& s, std::int64_t repeats) {
  return {s.samples, s.groups, s.channels * repeats, s.inner / repeats};
}

// What all groups share, each perhaps absent.
struct GroupParameters {
  const float *gain, *bias;
};

// A parameter (all channels), in `room` if its elements are to be repeated.
inline const float* repeat(const TensorRef& parameter, std::size_t repeats, float* room) {
  const float* const p = parameter.as<float>();
  if (p == nullptr || repeats == 1) return p;
  for (std::int64_t c = 0; c < parameter.elements(); ++c) {
    std::fill_n(room + std::size_t(c) * repeats, repeats, p[c]);
  }
  return room;
}

// out[c] = the sum of the `repeats` values of channel c.
inline void fold(const float* values, std::size_t repeats, const TensorRef& out) {
  for (std::int64_t c = 0; c < out.elements(); ++c, values += repeats) {
    out.as<float>()[c] = float(std::accumulate(values, values + repeats, 0.0));
  }
}

enum GroupSumKind : std::size_t { kGain, kBias, kGroupSumKinds };

// The workspace holds sums for every block, then one more float a channel, in rows as wide as
// theirs.
struct GroupBackwardPlan {
  Groups groups;
  ColumnSums sums;
  std::size_t repeats;

  float* extra(void* workspace, std::size_t block) const {
    return sums.run(workspace, sums.blocks) + block * sums.stride;
  }
  std::int64_t bytes() const {
    return sums.bytes() + std::int64_t(sums.blocks * sums.stride * sizeof(float));
  }
};

// Blocks of samples that leave sums have at least 128 KiB each; there are at most 32 of them, with
// at most 64 Ki sums in all. Without sums samples are independent rows.
inline RowBlocks blocks_of_samples(const GroupSizes& s, bool has_sums) {
  constexpr std::int64_t kElements = 32 * 1024, kBlocks = 32, kMostSums = 64 * 1024;
  const std::int64_t sums = kGroupSumKinds * s.groups * s.channels, width = s.groups * s.width();
  if (!has_sums) return independent_row_blocks({s.samples, width});
  const std::int64_t most = std::clamp<std::int64_t>(kMostSums / sums, 1, kBlocks);
  const std::int64_t least = std::max<std::int64_t>(1, kElements / width);
  return row_blocks({s.samples, width}, std::max(least, (s.samples + most - 1) / most));
}

}  // namespace keel::onednn

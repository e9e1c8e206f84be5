// The layout of group norm: how it sees its tensor, and where its parameters and sums are.
#pragma once

#include <algorithm>
#include <numeric>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/kernels/norm/statistic.h"
#include "backends/onednn/row_blocks.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// The groups of a tensor, seen as rows of a matrix.
struct Groups {
  NormStatistic statistic;
  std::size_t count, channels, inner;  // groups of a sample; channels of a group

  Groups(const NormStatistic& of, const GroupSizes& s)
      : statistic(of),
        count(std::size_t(s.groups)),
        channels(std::size_t(s.channels)),
        inner(std::size_t(s.inner)) {}
  std::size_t width() const { return channels * inner; }
  // The first channel of a row of the matrix of groups. A division would be slow for short rows.
  std::size_t channel(std::size_t row) const { return count == 1 ? 0 : row % count * channels; }
  // The number of elements that one loop over registers writes; the next loop continues there.
  std::size_t run() const { return inner > 1 ? inner : channels; }
  double variance_count() const {
    return keel::variance_count(std::int64_t(width()), statistic.unbiased);
  }
};

// For images with fewer pixels than a register holds, a loop over one channel would leave most of
// the register empty. Such images are treated as tokens, with gain and bias repeated for every
// pixel, unless sums for so many columns would leave too few blocks.
inline std::int64_t repeats_of(const GroupSizes& s) {
  constexpr std::int64_t kRegister = 16, kMostColumns = 8 * 1024;
  const bool is_short = s.inner > 1 && s.inner < kRegister;
  return is_short && s.groups * s.width() <= kMostColumns ? s.inner : 1;
}
inline GroupSizes with_repeats(const GroupSizes& s, std::int64_t repeats) {
  return {s.samples, s.groups, s.channels * repeats, s.inner / repeats};
}

// The parameters of all groups; each may be null.
struct GroupParameters {
  const float *gain, *bias;
};

// Returns a parameter of all channels; if its elements must be repeated, writes it to `room`.
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

// The workspace holds sums for every block, then one more row of floats a block, as
// wide as the rows of the sums.
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

// If blocks of samples leave sums, each has at least 128 KiB; there are at most 32 blocks, with at
// most 64 Ki sums in all. Without sums, samples are independent rows.
inline RowBlocks blocks_of_samples(const GroupSizes& s, bool has_sums) {
  constexpr std::int64_t kElements = 32 * 1024, kBlocks = 32, kMostSums = 64 * 1024;
  const std::int64_t sums = kGroupSumKinds * s.groups * s.channels, width = s.groups * s.width();
  if (!has_sums) return independent_row_blocks({s.samples, width});
  const std::int64_t most = std::clamp<std::int64_t>(kMostSums / sums, 1, kBlocks);
  const std::int64_t least = std::max<std::int64_t>(1, kElements / width);
  return row_blocks({s.samples, width}, std::max(least, (s.samples + most - 1) / most));
}

}  // namespace keel::onednn

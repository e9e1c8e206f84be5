// Shared code of column norms: which rows take part, where the sums lie in a workspace,
// and the order of the steps.
#pragma once

#include <algorithm>
#include <cstring>

#include "backends/onednn/column_blocks.h"
#include "src/ops/column_gradient_sums.h"
#include "src/ops/column_moments.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// A mask u8 (rows) with 0 for the rows left out; null if no row is left out.
using RowMask = const std::uint8_t*;

// K and B of a batch (src/ops/column_moments.h).
struct ColumnCounts {
  std::int64_t kept, all;
};

// The constants of a channel in the forward and in the backward of a norm that subtracts a mean.
struct CentredForwardConstant {
  enum Kind : std::size_t { kFactor, kShift, kCount };
};
struct CentredBackwardConstant {
  enum Kind : std::size_t { kLow, kScale, kMeanDy, kSlope, kCount };
};
// The kind of sums, of dy over the rows left out, that its backward has where padding counts.
inline constexpr std::size_t kPaddingDy = 3;

// The workspace holds kinds of sums in double for every block, then kinds of constants in float.
// Each kind is a row of channels padded to whole registers. Sums given to a node take the place of
// the first block's sums, and no others are formed.
struct ColumnPlan {
  ColumnBlocks blocks;
  std::size_t sums, constants;
  bool is_given = false;

  std::size_t sum_blocks() const { return is_given ? 1 : std::size_t(blocks.blocks); }

  std::size_t stride() const { return (std::size_t(blocks.sizes.channels) + 15) / 16 * 16; }
  double* sum(void* workspace, std::size_t block, std::size_t kind) const {
    return static_cast<double*>(workspace) + (block * sums + kind) * stride();
  }
  float* constant(void* workspace, std::size_t kind) const {
    return reinterpret_cast<float*>(sum(workspace, sum_blocks(), 0)) + kind * stride();
  }
  std::int64_t bytes() const {
    const std::size_t doubles = sum_blocks() * sums;
    return std::int64_t(stride() * (doubles * sizeof(double) + constants * sizeof(float)));
  }
  // The number of elements of a channel that take part.
  std::int64_t count(RowMask mask) const {
    const ColumnSizes& s = blocks.sizes;
    return mask ? s.outer - std::count(mask, mask + s.outer, std::uint8_t{0}) : s.count();
  }
  // The counts of the given rows or, if sums are given, the counts that these contain.
  ColumnCounts counts(RowMask mask, const TensorRef& given) const {
    if (!given) return {count(mask), blocks.sizes.count()};
    const auto row = [&](std::int64_t place) {
      const std::int64_t at = place * blocks.sizes.channels;
      return at < given.elements() ? std::int64_t(given.as<double>()[at]) : 0;
    };
    return {row(MomentRow::kCount), row(MomentRow::kAll)};
  }
};
static_assert(int(SquareRow::kCount) == int(MomentRow::kCount) &&
              int(CentredSumRow::kCount) == int(MomentRow::kCount) &&
              int(UncentredSumRow::kCount) == int(MomentRow::kCount));
static_assert(int(SquareRow::kAll) == int(MomentRow::kAll) &&
              int(CentredSumRow::kAll) == int(MomentRow::kAll) &&
              int(UncentredSumRow::kAll) == int(MomentRow::kAll));

// Copies a row of given sums to the place of a block's sums of one kind.
inline void take_row(const ColumnPlan& plan, const TensorRef& given, int row, double* sums,
                     const Tile& tile) {
  std::copy_n(given.as<double>() + row * plan.blocks.sizes.channels + std::int64_t(tile.first),
              tile.channels, sums + tile.first);
}

// Adds the sums of one kind over all blocks, in block order, and writes them to `to` (channels).
inline void add_blocks(const ColumnPlan& plan, const double* first, const Tile& tile, double* to) {
  const std::size_t next = plan.sums * plan.stride();
  for (std::size_t c = tile.first; c < tile.first + tile.channels; ++c) {
    to[c] = first[c];
    for (std::size_t block = 1; block < plan.sum_blocks(); ++block)
      to[c] += first[block * next + c];
  }
}

// Copies a ring buffer, of which this step changes one row, unless it is written over in place.
inline void carry_on(const TensorRef& before, const TensorRef& after) {
  if (after.data == before.data) return;
  std::memcpy(after.data, before.data, std::size_t(before.type.bytes()));
}

// Runs three steps: sums of tiles, statistics of panels, the final pass over tiles. One task does
// all three for a panel, or all threads do one step after the other.
template <class Sums, class Statistics, class Write>
void run_columns(const ColumnBlocks& blocks, const Sums& sums, const Statistics& statistics,
                 const Write& write) {
  if (blocks.resident()) {
    return blocks.run([&](std::size_t block, const Tile& tile) {
      sums(block, tile);
      statistics(tile);
      write(tile);
    });
  }
  blocks.run(sums);
  blocks.run_channels(statistics);
  blocks.run_backwards([&](std::size_t, const Tile& tile) { write(tile); });
}

}  // namespace keel::onednn

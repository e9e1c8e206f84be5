// Where the moments and the sums of column norms are stored, and how those of several blocks are
// merged. Compiled once per instruction set.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_KEPT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_KEPT_ROWS_INL_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_KEPT_ROWS_INL_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_KEPT_ROWS_INL_H_
#endif

#include "backends/onednn/simd/column_gradient-inl.h"
#include "backends/onednn/simd/uncentred_columns-inl.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// The moments, or the sums, of a block's tile, beginning with the kind of `at`.
HWY_INLINE ChannelMoments moments_at(const ColumnPlan& plan, const SumPlace& at,
                                     std::size_t channel) {
  const auto sum = [&](std::size_t k)
                       HWY_ATTR { return plan.sum(at.workspace, at.block, at.kind + k) + channel; };
  return {sum(0), sum(1)};
}
HWY_INLINE ChannelSums sums_at(const ColumnPlan& plan, const SumPlace& at, std::size_t channel) {
  const auto sum = [&](std::size_t k)
                       HWY_ATTR { return plan.sum(at.workspace, at.block, at.kind + k) + channel; };
  return {sum(0), sum(1), sum(2)};
}

// Merges the moments of n more elements of `channels` channels into those of `count`.
HWY_INLINE void merge_all(const ChannelMoments& into, const ChannelMoments& more,
                          std::size_t channels, const MergeWeights& weights) {
  for_lanes(channels, [&](auto, std::size_t c) KEEL_LOOP_BODY {
    merge(into, c, weights,
          StripMoments{WideDoubles::load(more.mean + c), WideDoubles::load(more.squares + c)});
  });
}

// The number of elements that a channel has in the kept rows of a tile.
HWY_INLINE double kept_elements(const Tile& tile, RowMask mask) {
  std::size_t rows = tile.rows;
  if (mask != nullptr) {
    const RowMask first = mask + tile.offset / tile.stride;
    rows -= static_cast<std::size_t>(std::count(first, first + tile.rows, std::uint8_t{0}));
  }
  return static_cast<double>(rows * tile.inner);
}

// Merges a panel's moments of all blocks into those of block 0. moments_of(block) are a block's.
template <class MomentsOf>
HWY_INLINE void merge_blocks(const ColumnBlocks& blocks, RowMask mask, std::size_t channels,
                             const MomentsOf& moments_of) {
  const auto kept_in_block = [&](std::size_t block) HWY_ATTR {
    return kept_elements(blocks.tile(static_cast<std::int64_t>(block), 0), mask);
  };
  double seen = kept_in_block(0);
  for (std::size_t block = 1; block < static_cast<std::size_t>(blocks.blocks); ++block) {
    const double more = kept_in_block(block);
    if (more == 0) continue;
    merge_all(moments_of(0), moments_of(block), channels, MergeWeights(seen, more));
    seen += more;
  }
}

// The moments of a tile's channels: merged over all blocks, or those given to the node.
HWY_INLINE ChannelMoments merged_moments(const ColumnPlan& plan, RowMask mask, void* workspace,
                                         const Tile& tile) {
  const auto of_block = [&](std::size_t block) HWY_ATTR {
    return moments_at(plan, {workspace, block, 0}, tile.first);
  };
  if (!plan.is_given) merge_blocks(plan.blocks, mask, tile.channels, of_block);
  return of_block(0);
}

// Copy the values given to a node, for one tile, to the place of the first block's sums. The
// other blocks have no sums.
HWY_INLINE void take_moments(const ColumnPlan& plan, const SumPlace& at, const TensorRef& given,
                             const Tile& tile) {
  if (at.block > 0) return;
  take_row(plan, given, MomentRow::kMean, plan.sum(at.workspace, 0, at.kind), tile);
  take_row(plan, given, MomentRow::kSquares, plan.sum(at.workspace, 0, at.kind + 1), tile);
}
HWY_INLINE void take_gradient_sums(const ColumnPlan& plan, const SumPlace& at,
                                   const TensorRef& given, std::size_t kinds, const Tile& tile) {
  if (at.block > 0) return;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    take_row(plan, given, CentredSumRow::kXhat + int(kind),
             plan.sum(at.workspace, 0, at.kind + kind), tile);
  }
}

// Sums dy over the rows of a tile that the mask leaves out.
template <class T>
HWY_INLINE void tile_left_out(const Tile& tile, RowMask mask, const T* dy, double* sums) {
  std::fill_n(sums, tile.channels, 0.0);
  for_left_out(tile, mask, [&](std::size_t at) HWY_ATTR {
    for_lanes(tile.channels, [&](auto part, std::size_t c) KEEL_LOOP_BODY {
      add_to(sums + c, WideDoubles::of(part.load(dy + at + c)));
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

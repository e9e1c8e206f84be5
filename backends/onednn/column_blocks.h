// Cuts a tensor (outer, channels, inner), whose channels are normalized over outer and inner, into
// tasks. Tasks depend only on sizes, so sums have the same bits for any thread count.
#pragma once

#include <algorithm>

#include "backends/onednn/blocks.h"
#include "src/ops/norm/sizes.h"

namespace keel::onednn {

// A range of outer rows and channels: element (r, c, i) is at offset + r * stride + c * inner + i.
struct Tile {
  std::size_t rows, channels, inner, stride, offset;
  std::size_t first;  // its first channel

  // The number of contiguous elements that a loop over registers visits: a row or a span.
  std::size_t run_length() const { return inner == 1 ? stride : inner; }
};

// Calls body(part) for ranges of rows of a tile, so small that they stay in L1 or L2
// between two passes over them.
template <class Body>
void for_row_parts(const Tile& tile, const Body& body) {
  constexpr std::size_t kElements = 16 * 1024;
  const std::size_t most = std::max<std::size_t>(1, kElements / (tile.channels * tile.inner + 1));
  Tile part = tile;
  for (std::size_t row = 0; row < tile.rows; row += most) {
    part.rows = std::min(most, tile.rows - row);
    part.offset = tile.offset + row * tile.stride;
    body(part);
  }
}

// A grid of `panels` ranges of channels by `blocks` ranges of outer rows. If there is one block, a
// panel stays in L2 between the pass that forms its sums and the pass that uses them.
struct ColumnBlocks {
  ColumnSizes sizes;
  std::int64_t panel, panels, block, blocks;

  bool resident() const { return blocks == 1; }
  std::size_t run_length() const { return tile(0, 0).run_length(); }

  // Runs body(b, tile) for every task, where b is its range of rows.
  template <class Body>
  void run(const Body& body) const {
    parallel_blocks(panels * blocks, [this, &body](std::int64_t task) {
      body(std::size_t(task / panels), tile(task / panels, task % panels));
    });
  }

  // The same, but each thread begins with the tasks that it ended with in run().
  template <class Body>
  void run_backwards(const Body& body) const {
    parallel_blocks_backwards(panels * blocks, [this, &body](std::int64_t task) {
      body(std::size_t(task / panels), tile(task / panels, task % panels));
    });
  }

  // Runs body(tile) for ranges of channels, each with all rows.
  template <class Body>
  void run_channels(const Body& body) const {
    const std::int64_t range = channel_range();
    parallel_blocks((sizes.channels + range - 1) / range, [this, &body, range](std::int64_t task) {
      const std::int64_t first = task * range;
      body(all_rows(first, std::min(range, sizes.channels - first)));
    });
  }

  Tile tile(std::int64_t b, std::int64_t p) const;

 private:
  std::int64_t channel_range() const;
  Tile all_rows(std::int64_t first, std::int64_t channels) const;
};

// Both passes read `tensors` tensors of this size; a block keeps `sums` doubles a channel.
ColumnBlocks column_blocks(const ColumnSizes& sizes, std::int64_t tensors, std::int64_t sums);
// The number of kinds of sums of a block in the backward of a norm that subtracts a mean: sums of
// xhat, of dy, of dy * xhat and, if there is padding, of the dy of rows left out.
constexpr std::int64_t centred_sum_kinds(bool has_padding) { return has_padding ? 4 : 3; }
// Blocks of a matrix whose rows must not be cut: one panel.
ColumnBlocks whole_row_blocks(const ColumnSizes& sizes, std::int64_t sums);
// Blocks of a tensor (samples, steps, channels) whose samples have their own statistics: one panel,
// and blocks of whole samples. The sizes are those of (samples * steps, channels).
ColumnBlocks sample_blocks(std::int64_t samples, std::int64_t steps, std::int64_t channels,
                           std::int64_t sums);

}  // namespace keel::onednn

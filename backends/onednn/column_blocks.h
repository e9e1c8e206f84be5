// How a tensor (outer, channels, inner) whose channels are normalized over outer and inner is cut
// into tasks. Tasks depend on sizes alone, so that sums have the same bits for any thread count.
#pragma once

#include <algorithm>

#include "backends/onednn/threads.h"
#include "src/ops/norm/batch_norm.h"

namespace keel::onednn {

// Outer rows [first_row, last_row) of channels [first, last).
struct Slab {
  std::size_t first_row, last_row, first, last;
  std::size_t rows() const { return last_row - first_row; }
  std::size_t channels() const { return last - first; }
};

// A grid of `panels` ranges of channels by `blocks` ranges of outer rows. A single block: one panel
// stays in L2 between the pass over it that forms its sums and the pass that uses them.
struct ColumnBlocks {
  ColumnSizes sizes;
  std::int64_t panel, panels, block, blocks;

  bool resident() const { return blocks == 1; }

  // Runs body(b, slab) for every task, b being its range of rows.
  template <class Body>
  void run(const Body& body) const {
    parallel_blocks(panels * blocks, [this, &body](std::int64_t task) {
      const std::int64_t b = task / panels, p = task % panels;
      const std::int64_t last_row = std::min(sizes.outer, (b + 1) * block);
      const std::int64_t last = std::min(sizes.channels, (p + 1) * panel);
      body(std::size_t(b), Slab{std::size_t(b * block), std::size_t(last_row),
                                std::size_t(p * panel), std::size_t(last)});
    });
  }
};

// `tensors` of that size are read in both passes; `sums` doubles a channel are kept a block.
ColumnBlocks column_blocks(const ColumnSizes& sizes, std::int64_t tensors, std::int64_t sums);

}  // namespace keel::onednn

// What the norms over columns share: which rows take part, where their sums lie in a workspace, and
// the order of their steps.
#pragma once

#include <algorithm>

#include "backends/onednn/column_blocks.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// A mask u8 (rows), 0 for the rows left out; null: none are.
using RowMask = const std::uint8_t*;

// The workspace: kinds of sums in double for every block, then kinds of constants in float, each a
// row of channels padded to whole registers.
struct ColumnPlan {
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
  // Elements of a channel that take part.
  std::int64_t count(RowMask mask) const {
    const ColumnSizes& s = blocks.sizes;
    return mask ? s.outer - std::count(mask, mask + s.outer, std::uint8_t{0}) : s.count();
  }
};

// Sums of slabs, statistics of panels, the final pass over slabs: in one task a panel, or with all
// threads one after the other.
template <class Sums, class Statistics, class Write>
void run_columns(const ColumnBlocks& blocks, const Sums& sums, const Statistics& statistics,
                 const Write& write) {
  if (blocks.resident()) {
    return blocks.run([&](std::size_t block, const Slab& slab) {
      sums(block, slab);
      statistics(slab);
      write(slab);
    });
  }
  blocks.run(sums);
  blocks.run_channels(statistics);
  blocks.run_backwards([&](std::size_t, const Slab& slab) { write(slab); });
}

}  // namespace keel::onednn

// The workspace and the steps of a column norm: sums over slabs of the tensor, statistics, and one
// more pass over it. Rows of tokens may be left out by a mask.
#pragma once

#include "backends/onednn/column_blocks.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

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
};

// The elements a channel has in the outer rows of one block, or of all.
class KeptElements {
 public:
  KeptElements(const ColumnBlocks& blocks, const std::uint8_t* mask)
      : blocks_(blocks), mask_(mask) {}
  double in_block(std::size_t block) const {
    const std::int64_t first = std::int64_t(block) * blocks_.block;
    return count(first, std::min(first + blocks_.block, blocks_.sizes.outer));
  }
  double in_all() const { return count(0, blocks_.sizes.outer); }

 private:
  double count(std::int64_t first, std::int64_t last) const {
    std::int64_t rows = last - first;
    if (mask_) rows -= std::count(mask_ + first, mask_ + last, 0);
    return double(rows * blocks_.sizes.inner);
  }

  const ColumnBlocks& blocks_;
  const std::uint8_t* mask_;
};

// Calls body(run) for the runs of neighbouring rows of a slab that the mask (outer rows) keeps, or
// once without a mask.
template <class Body>
void for_kept_runs(const Slab& slab, const std::uint8_t* mask, const Body& body) {
  if (mask == nullptr) return body(slab);
  const std::uint8_t* kept = mask + slab.offset / slab.stride;
  for (std::size_t row = 0; row < slab.rows; ++row) {
    if (kept[row] == 0) continue;
    Slab run = slab;
    run.offset += row * slab.stride;
    run.rows = 1;
    while (row + 1 < slab.rows && kept[row + 1] != 0) {
      ++row;
      ++run.rows;
    }
    body(run);
  }
}

// Writes 0 to the rows of a slab of tokens that the mask leaves out.
inline void clear_left_out(const Slab& slab, const std::uint8_t* mask, float* y) {
  if (mask == nullptr) return;
  const std::uint8_t* kept = mask + slab.offset / slab.stride;
  for (std::size_t row = 0; row < slab.rows; ++row) {
    if (kept[row] == 0) std::fill_n(y + slab.offset + row * slab.stride, slab.channels, 0.0f);
  }
}

// The passes of a kernel whose plan is a ColumnPlan with attributes: in one task a panel where that
// stays in L2, else each with all threads. Without `sums` the first is left out.
template <class Plan>
struct ColumnSteps {
  void (*sums)(const Binding&, const Plan&, std::size_t block, const Slab&);
  void (*statistics)(const Binding&, const Plan&, const Slab&);
  void (*write)(const Binding&, const Plan&, const Slab&);

  void run(const Binding& b, const Plan& plan) const {
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

}  // namespace keel::onednn

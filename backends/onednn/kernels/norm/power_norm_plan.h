// The data that the forward and the backward of PowerNorm share.
#pragma once

#include "backends/onednn/column_plan.h"
#include "src/ops/norm/power_norm.h"

namespace keel::onednn {

// The maximum number of elements in the buffer for dz of a group.
inline constexpr std::size_t kGroupRoom = 4 * 1024;

// The attributes that the kernels need, and the offsets of their sums: first those of the kept
// rows, then, with pad_stats, those of all rows.
struct PowerNormPlan {
  ColumnPlan columns;
  double eps, alpha_f, alpha_b;
  std::int64_t warmup;
  bool is_release, pad_stats, training;
  std::size_t groups;  // groups of the preceding scaling; 0 if there is none
  double scaling_eps;
  std::size_t run_kind;  // the kind after all sums

  bool is_scaled() const { return groups > 0; }
  double* sum(const Binding& b, std::size_t block, std::size_t kind, std::size_t channel) const {
    return columns.sum(b.workspace, block, kind) + channel;
  }
  void clear_sums(const Binding& b, std::size_t block, const Tile& tile) const {
    for (std::size_t kind = 0; kind < columns.sums; ++kind) {
      std::fill_n(sum(b, block, kind, tile.first), tile.channels, 0.0);
    }
  }
  // Returns the start of a kind that a scaling adds: instead of a double it holds two floats a
  // channel.
  float* run(const Binding& b, std::size_t block) const {
    return reinterpret_cast<float*>(sum(b, block, run_kind, 0));
  }
  // The same of one more kind, which the backward has where is_wide().
  float* wide_room(const Binding& b, std::size_t block) const {
    return reinterpret_cast<float*>(sum(b, block, run_kind + 1, 0));
  }
  // Whether a group has more elements than the buffer of a kernel.
  bool is_wide() const {
    return is_scaled() && std::size_t(columns.blocks.sizes.channels) / groups > kGroupRoom;
  }
};

// Returns the plan for x. There are `sums` kinds of sums for the kept rows and, with pad_stats, as
// many again for all rows. The pass that sums and the pass that writes read `tensors` tensors each.
inline PowerNormPlan power_norm_plan(const Shape& x, const PowerNormAttrs& attrs,
                                     std::int64_t tensors, std::int64_t sums) {
  if (attrs.pad_stats) sums *= 2;
  if (attrs.is_scaled()) sums += 1;
  const ColumnSizes sizes = column_sizes(x);
  const ColumnBlocks blocks =
      attrs.is_scaled() ? whole_row_blocks(sizes, sums) : column_blocks(sizes, tensors, sums);
  return {{blocks, std::size_t(sums), 0},
          attrs.eps,
          attrs.alpha_f,
          attrs.alpha_b,
          attrs.warmup,
          attrs.is_release(),
          attrs.pad_stats,
          attrs.training,
          std::size_t(attrs.groups),
          attrs.scaling_eps,
          std::size_t(sums) - 1};
}

}  // namespace keel::onednn

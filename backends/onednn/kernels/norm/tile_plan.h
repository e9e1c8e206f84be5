// The cut of a backward into tiles, for norms whose gradient of an element needs nothing but the
// element and what is known of its row.
#pragma once

#include <algorithm>
#include <cstring>

#include "backends/onednn/column_sums.h"
#include "backends/onednn/row_blocks.h"

namespace keel::onednn {

// Some rows of some columns. The width of `rows` is the number of these columns.
struct GradientTile {
  std::size_t index, column;
  RowRange rows;
};

// Rows are cut into blocks, and their columns into panels whose sums stay in L1. The cut depends
// only on the sizes. A tile has kSums sums of each column. The first kColumnSums give vectors; a
// tile leaves them where there are several blocks. The others give numbers, of which a tile leaves
// one each.
template <std::size_t kSums, std::size_t kColumnSums>
class TilePlan {
 public:
  static constexpr std::size_t kWidest = 1024;  // columns of a panel
  // The doubles that hold the sums of a tile, in double and in float.
  static constexpr std::size_t kMemory = kSums * kWidest * 3 / 2;

  explicit TilePlan(const RowSizes& sizes)
      : width_(std::size_t(sizes.width)),
        blocks_(is_wide(sizes) ? row_blocks(sizes, std::max<std::int64_t>(1, sizes.rows))
                               : summed_row_blocks(sizes, kColumnSums)),
        panels_((width_ + kWidest - 1) / kWidest),
        panel_(ColumnSums(1, std::int64_t((width_ + panels_ - 1) / panels_), 1).stride) {}

  // Runs body(tile) for every tile.
  template <class Body>
  void run(const Body& body) const {
    if (tiles() == 0) return;
    parallel_blocks(std::int64_t(tiles()),
                    [this, &body](std::int64_t i) { body(tile(std::size_t(i))); });
  }
  // Calls body(first column, number of columns, sums, their memory) for every panel.
  template <class Body>
  void each_panel(void* workspace, const Body& body) const {
    const ColumnSums left(kColumnSums, std::int64_t(panel_), blocks_.count);
    for (std::size_t panel = 0; panel < panels_; ++panel) {
      body(panel * panel_, columns_from(panel * panel_), left,
           columns(workspace, panel * left.blocks));
    }
  }
  // The sums of each column of a tile, while it is being visited.
  ColumnSums tile_sums() const { return {kSums, std::int64_t(panel_), 1}; }
  bool is_one_block() const { return blocks_.count == 1; }

  // Keeps the sums of a tile that has been visited.
  void leave(void* workspace, const GradientTile& tile, const double* sums) const {
    for (std::size_t kind = kColumnSums; kind < kSums; ++kind) {
      number(workspace, tile.index, kind) = sum_of(sums + kind * panel_, tile.rows.width);
    }
    if (is_one_block()) return;
    std::memcpy(columns(workspace, tile.index), sums, kColumnSums * panel_ * sizeof(double));
  }
  // The sum of one kind, which gives a number, over all tiles in their order.
  double total(void* workspace, std::size_t kind) const {
    double total = 0;
    for (std::size_t i = 0; i < tiles(); ++i) total += number(workspace, i, kind);
    return total;
  }
  std::int64_t bytes() const {
    const std::size_t of_columns = is_one_block() ? 0 : tiles() * kColumnSums * panel_;
    return std::int64_t((kNumbers * tiles() + of_columns) * sizeof(double));
  }

  std::size_t width() const { return width_; }

 private:
  static constexpr std::size_t kNumbers = kSums - kColumnSums;

  std::size_t tiles() const { return panels_ * std::size_t(blocks_.count); }
  // A panel is as wide as the memory of its sums; the last one is narrower.
  std::size_t columns_from(std::size_t first) const {
    return std::min(panel_, width_ - std::min(first, width_));
  }
  GradientTile tile(std::size_t index) const {
    const std::size_t count = std::size_t(blocks_.count), block = index % count;
    const std::size_t first = block * std::size_t(blocks_.block), column = index / count * panel_;
    const std::size_t last =
        std::min(std::size_t(blocks_.rows), first + std::size_t(blocks_.block));
    return {index, column, {first, last, columns_from(column)}};
  }
  double& number(void* workspace, std::size_t tile, std::size_t kind) const {
    return static_cast<double*>(workspace)[kNumbers * tile + (kind - kColumnSums)];
  }
  double* columns(void* workspace, std::size_t tile) const {
    return static_cast<double*>(workspace) + kNumbers * tiles() + tile * kColumnSums * panel_;
  }
  static double sum_of(const double* terms, std::size_t n) {
    constexpr std::size_t kChains = 4;  // so that additions need not wait
    double chains[kChains] = {};
    for (std::size_t i = 0; i < n; ++i) chains[i % kChains] += terms[i];
    return (chains[0] + chains[1]) + (chains[2] + chains[3]);
  }

  std::size_t width_;
  RowBlocks blocks_;
  std::size_t panels_, panel_;
};

}  // namespace keel::onednn

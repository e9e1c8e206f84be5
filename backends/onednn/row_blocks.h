// Cuts the rows of a row norm into blocks. Blocks depend only on sizes, so that sums over rows
// have the same bits for any thread count.
#pragma once

#include <algorithm>

#include "backends/onednn/blocks.h"
#include "src/ops/norm/sizes.h"
#include "src/runtime/backend.h"

namespace keel::onednn {

// Rows [first, last) of a matrix.
struct RowRange {
  std::size_t first, last, width;
};

// How many rows go through each pass of a kernel together. Sums over rows depend on it.
constexpr std::size_t rows_together(std::size_t width) {
  return width <= 512 ? 4 : width <= 2048 ? 2 : 1;
}

// Runs body(binding, rows) on a range of rows, and the neighbours before and after it: on the whole
// range, or with neighbours or a window on parts of it that stay in a cache.
template <class Body>
void with_neighbours(const Binding& b, const Neighbours& neighbours, const RowRange& range,
                     const Body& body) {
  const bool is_alone = neighbours.before.empty() && neighbours.after.empty();
  if (is_alone && !neighbours.window) return body(b, range);
  // The rows that a kernel takes together must not depend on neighbours.
  constexpr auto kElements = std::size_t(kWindowElements);
  const std::size_t together = rows_together(range.width);
  const std::size_t rows = std::max(kElements / range.width / together, std::size_t{1}) * together;
  for (std::size_t first = range.first; first < range.last; first += rows) {
    const RowRange part{first, std::min(first + rows, range.last), range.width};
    const auto run = [&](const std::vector<ElementWork>& works) {
      for (const ElementWork& work : works) {
        work(std::int64_t(part.first * range.width), std::int64_t(part.last * range.width));
      }
    };
    run(neighbours.before);
    if (neighbours.window) {
      neighbours.window(std::int64_t(part.first), std::int64_t(part.last),
                        [&body, &part](const Binding& shown) { body(shown, part); });
    } else {
      body(b, part);
    }
    run(neighbours.after);
  }
}

struct RowBlocks {
  std::int64_t rows, width, block, count;  // `count` blocks of `block` rows, the last one shorter

  // Runs body(b, range) for every block b.
  template <class Body>
  void run(const Body& body) const {
    if (count == 0) return;
    parallel_blocks(count, [this, &body](std::int64_t b) {
      const std::int64_t last = std::min(rows, (b + 1) * block);
      body(std::size_t(b), RowRange{std::size_t(b * block), std::size_t(last), std::size_t(width)});
    });
  }
};

// Makes the kernel of a norm whose rows do not depend on each other: run(binding, range) computes
// some of them.
template <class Run>
Prepared kernel_of_rows(const RowBlocks& blocks, Run run) {
  return row_kernel_of(blocks.width, [=](const Binding& b, const Neighbours& neighbours) {
    blocks.run(
        [&](std::size_t, const RowRange& range) { with_neighbours(b, neighbours, range, run); });
  });
}

inline RowBlocks row_blocks(const RowSizes& sizes, std::int64_t block) {
  return {sizes.rows, sizes.width, block, (sizes.rows + block - 1) / block};
}

// Blocks for rows that do not depend on each other.
RowBlocks independent_row_blocks(const RowSizes& sizes);

// Blocks that leave sums over their rows: `sums` sums a column.
RowBlocks summed_row_blocks(const RowSizes& sizes, std::int64_t sums);

// Whether the sums of each block would take a megabyte: such columns are summed separately.
inline bool is_wide(const RowSizes& sizes) { return sizes.width > 16 * 1024; }

// Blocks for the dx of rows; they leave sums if sums are wanted and the rows are not wide.
RowBlocks gradient_row_blocks(const RowSizes& sizes, std::int64_t sums, bool has_sums);

// Runs body(first, n) for ranges of at most 1024 columns.
template <class Body>
void run_columns_of_rows(std::size_t width, const Body& body) {
  constexpr std::int64_t kColumns = 1024;
  parallel_range(std::int64_t(width), kColumns, [&body](std::int64_t begin, std::int64_t end) {
    body(std::size_t(begin), std::size_t(end - begin));
  });
}

}  // namespace keel::onednn

// Random numbers of a batch by row (src/core/rng.h, row_block): the block of words that a thread
// draws, the elements that it is for, and normal numbers.
#pragma once

#include <cmath>

#include "backends/cuda/device.h"
#include "src/ops/random_key.h"

namespace keel::cuda {

// The elements that one block of words belongs to.
struct DrawnBlock {
  std::int64_t row, index;  // row of the batch; index of the block in the row
  std::int64_t first;       // element of the whole tensor
  int count;
};

// Numbers the blocks of all rows in order. A block has words for `each` elements; the last block
// of a row is partly filled.
struct DrawnBlocks {
  DrawnRows rows;
  int each;
  std::int64_t of_row, total;

  static DrawnBlocks of(const Shape& shape, int each) {
    const DrawnRows rows = drawn_rows(shape);
    const std::int64_t of_row = ceil_div(rows.width, each);
    return {rows, each, of_row, rows.rows * of_row};
  }
  __device__ DrawnBlock operator[](std::int64_t i) const {
    // A 32-bit division takes a fraction of the time of a 64-bit one.
    const std::int64_t row =
        total >> 32 == 0 ? std::uint32_t(i) / std::uint32_t(of_row) : i / of_row;
    const std::int64_t index = i - row * of_row, left = rows.width - index * each;
    return {row, index, row * rows.width + index * each, left < each ? int(left) : each};
  }
};

// The words of block `index` of a row; rows count through the whole update.
__device__ inline Philox4 draw(const Philox& random, std::int32_t first_row, std::int64_t row,
                               std::int64_t index) {
  return random.block(row_block(std::uint64_t(first_row + row), 4 * std::uint64_t(index)));
}

// Philox::normal from two words.
__device__ inline double normal(std::uint32_t first, std::uint32_t second) {
  const double u = (first >> 8) * 0x1p-24, v = (second >> 8) * 0x1p-24;
  return sqrt(-2.0 * log1p(-u)) * cos(6.283185307179586 * v);
}

}  // namespace keel::cuda

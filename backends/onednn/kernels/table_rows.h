// The gradient of a table, given as rows (src/ops/row_gradient.h), piece by piece.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel::onednn {

// Elements of a piece. A piece fits the L1 cache and is whole registers on every target.
inline constexpr std::int64_t kPieceElements = 2048;

struct TableRows {
  const std::int32_t* ids;  // (n), ascending; entries without a gradient have ids beyond the table
  const float* rows;        // (n, width)
  std::int64_t n, width;

  // The first row whose id is at least `id`.
  std::int64_t first_from(std::int64_t id) const {
    return std::lower_bound(ids, ids + n, id) - ids;
  }
  // Writes elements begin to end - 1 of the gradient, at most kPieceElements, to `piece`. If all of
  // them are 0, returns false and writes nothing.
  bool write_out(std::int64_t begin, std::int64_t end, float* piece) const {
    const std::int64_t last = (end - 1) / width;
    std::int64_t j = first_from(begin / width);
    if (j == n || ids[j] > last) return false;
    std::fill(piece, piece + (end - begin), 0.0f);
    for (; j < n && ids[j] <= last; ++j) {
      const std::int64_t row = ids[j] * width;
      const std::int64_t from = std::max(row, begin), to = std::min(row + width, end);
      std::copy(rows + j * width + (from - row), rows + j * width + (to - row),
                piece + (from - begin));
    }
    return true;
  }
};

}  // namespace keel::onednn

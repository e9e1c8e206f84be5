// A random stream at one update, as kernels that draw many numbers at once take it.
#pragma once

#include <cstdint>

#include "src/ops/random_key.h"

namespace keel::onednn {

struct PhiloxStream {
  std::uint32_t key[2], stream, tick;

  // Of an op's attributes `seed` and `stream`.
  template <class Attrs>
  static PhiloxStream of(const Attrs& attrs, std::int32_t tick) {
    return {{std::uint32_t(attrs.seed), std::uint32_t(std::uint64_t(attrs.seed) >> 32)},
            std::uint32_t(attrs.stream),
            std::uint32_t(tick)};
  }
};

// The rows of a batch whose elements draw from a stream, row 0 being row `first_row` of the update.
struct RandomRows {
  PhiloxStream stream;
  DrawnRows rows;
  std::int64_t first_row;

  // Blocks of all rows, when a block has words for `each` elements and a row's last is filled in
  // part.
  std::int64_t blocks(std::int64_t each) const {
    return rows.rows * ((rows.width + each - 1) / each);
  }
};

}  // namespace keel::onednn

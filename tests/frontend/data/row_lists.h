// Lists of row numbers that the tests of orders share.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace keel::data {

using Rows = std::vector<std::int64_t>;

// 0, 1, ..., n - 1.
inline Rows identity(std::int64_t n) {
  Rows rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

}  // namespace keel::data

// The memory of a matrix packed in panels of columns (simd/panel_product-inl.h), whatever the
// instruction set.
#pragma once

#include <cstddef>

namespace keel::onednn {

inline constexpr std::size_t kWidestPanel = 32;  // columns: two registers of AVX-512

constexpr std::size_t whole_panels(std::size_t columns) {
  return (columns + kWidestPanel - 1) / kWidestPanel * kWidestPanel;
}
// The number of floats that the panels of a matrix (terms, columns) take.
constexpr std::size_t panel_floats(std::size_t terms, std::size_t columns) {
  return terms * whole_panels(columns);
}
// The distance of rows of n floats that do not meet in few sets of the cache, one above the other.
constexpr std::size_t padded_row(std::size_t n) { return whole_panels(n) + 16; }

}  // namespace keel::onednn

// The memory of a matrix packed in panels of columns (simd/panel_product-inl.h), whatever the
// instruction set.
#pragma once

#include <cstddef>
#include <type_traits>

#include "backends/onednn/narrow_product.h"

namespace keel::onednn {

inline constexpr std::size_t kWidestPanel = 32;  // columns: two registers of AVX-512

constexpr std::size_t whole_panels(std::size_t columns) {
  return (columns + kWidestPanel - 1) / kWidestPanel * kWidestPanel;
}
// The number of floats that the panels of a matrix (terms, columns) take.
constexpr std::size_t panel_floats(std::size_t terms, std::size_t columns) {
  return terms * whole_panels(columns);
}
// Panels of a matrix of T consist of its numbers, those of bf16 of pairs of neighbouring terms.
template <class T>
using Packed = std::conditional_t<std::is_same_v<T, BF16>, Pair, T>;
// The number of these for the terms of a column.
template <class T>
constexpr std::size_t packed_terms(std::size_t terms) {
  return std::is_same_v<T, BF16> ? pairs_of(terms) : terms;
}
// The distance of rows of n floats that do not meet in few sets of the cache, one above the other.
constexpr std::size_t padded_row(std::size_t n) { return whole_panels(n) + 16; }

}  // namespace keel::onednn

// Transposing a tile of a matrix of 4-byte elements.
#pragma once

#include <cstdint>

namespace keel::onednn {

// dst[j * dst_stride + i] = src[i * src_stride + j] for i < rows, j < columns.
template <class T>
struct Tile {
  const T* src;
  T* dst;
  std::int64_t src_stride, dst_stride, rows, columns;
};

void transpose_tile(const Tile<float>& tile);
void transpose_tile(const Tile<std::uint32_t>& tile);

}  // namespace keel::onednn

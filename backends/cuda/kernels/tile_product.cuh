// Products of matrices whose elements a kernel finds for itself: rows chosen by a list, pairs of
// indices, a number of rows that only the device knows. A block computes a tile of the result; the
// terms of an element are added in their order.
#pragma once

#include "backends/cuda/device.h"

namespace keel::cuda {

inline constexpr int kTileSide = 64, kTileTerms = 16, kTileBlock = 256;

// The grid of a product with at most so many rows and columns.
inline Grid tile_grid(std::int64_t rows, std::int64_t columns) {
  return {ceil_div(rows, kTileSide) * ceil_div(columns, kTileSide), kTileBlock};
}

// Calls store(i, j, sum over t of a(i, t) b(t, j)) for i < rows() and j < columns, t < terms(). A
// block past the last row returns at once.
template <class Product>
__global__ void __launch_bounds__(kTileBlock) tile_product(Product p) {
  constexpr int kWide = kTileSide + 1;  // no two threads of a warp meet in one bank
  constexpr int kEach = kTileSide / 16;
  __shared__ Shared<float, kTileTerms * kWide> left, right;
  const std::int64_t strips = (p.columns + kTileSide - 1) / kTileSide;
  const std::int64_t first = blockIdx.x / strips * kTileSide;
  const std::int64_t first_column = blockIdx.x % strips * kTileSide;
  const std::int64_t rows = p.rows(), terms = p.terms();
  if (first >= rows) return;
  const int thread = int(threadIdx.x), row = thread / 16, column = thread % 16;
  float sums[kEach][kEach] = {};
  for (std::int64_t t = 0; t < terms; t += kTileTerms) {
    for (int e = thread; e < kTileSide * kTileTerms; e += kTileBlock) {
      const int side = e / kTileTerms, term = e % kTileTerms;
      const bool exists = t + term < terms;
      const bool is_row = exists && first + side < rows;
      const bool is_column = exists && first_column + side < p.columns;
      left[term * kWide + side] = is_row ? p.a(first + side, t + term) : 0;
      right[term * kWide + side] = is_column ? p.b(t + term, first_column + side) : 0;
    }
    __syncthreads();
    for (int term = 0; term < kTileTerms; ++term) {
      float a[kEach], b[kEach];
      KEEL_UNROLL
      for (int e = 0; e < kEach; ++e) {
        a[e] = left[term * kWide + row + 16 * e];
        b[e] = right[term * kWide + column + 16 * e];
      }
      KEEL_UNROLL
      for (int r = 0; r < kEach; ++r) {
        KEEL_UNROLL
        for (int c = 0; c < kEach; ++c) sums[r][c] = fmaf(a[r], b[c], sums[r][c]);
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < kEach; ++r) {
    for (int c = 0; c < kEach; ++c) {
      const std::int64_t i = first + row + 16 * r, j = first_column + column + 16 * c;
      if (i < rows && j < p.columns) p.store(i, j, sums[r][c]);
    }
  }
}

}  // namespace keel::cuda

// How the threads of a block cover a tensor (outer, channels, inner) whose columns or channels are
// processed separately. Neighbouring threads have neighbouring elements: four each, if these can be
// read in one access of 16 bytes.
#pragma once

#include <algorithm>
#include <bit>

#include "backends/cuda/kernels/data.cuh"
#include "src/ops/norm/sizes.h"

namespace keel::cuda {

inline constexpr int kColumnBlock = 256;            // threads
inline constexpr std::int64_t kBlocksWanted = 528;  // four a multiprocessor of an H200
inline constexpr std::int64_t kLongestPart = 1024;  // elements of an image that a warp takes

inline std::int64_t aligned_bytes(std::int64_t bytes) { return ceil_div(bytes, 256) * 256; }

// For tokens, `lanes` threads have `wide` columns each, and the block's other threads have other
// rows of these columns. For images, a warp processes a part of one channel of one image at a time.
struct Tiling {
  int wide, lanes;
  std::int64_t strips;       // of columns, or channels
  std::int64_t units;        // rows, or parts of images
  std::int64_t parts, part;  // parts of an image; elements of a part
};
inline Tiling tiling_of(const ColumnSizes& s) {
  if (s.inner > 1) {
    const int wide = s.inner % 4 == 0 ? 4 : 1;
    const std::int64_t part = ceil_div(ceil_div(s.inner, ceil_div(s.inner, kLongestPart)), 4) * 4;
    const std::int64_t parts = ceil_div(s.inner, part);
    return {wide, 1, s.channels, s.outer * parts, parts, part};
  }
  const int wide = s.channels % 4 == 0 ? 4 : 1;
  const std::int64_t threads = std::clamp<std::int64_t>(s.channels / wide, 1, kWarp);
  const int lanes = int(std::bit_ceil(std::uint64_t(threads)));
  return {wide, lanes, ceil_div(s.channels, lanes * wide), s.outer, 1, 1};
}

// kWide neighbouring elements of x as they lie in memory, for widen(); 0 if x is absent.
template <int kWide>
struct Wide {
  float at[kWide] = {};

  __device__ Wide(const Data& x, std::int64_t i) {
    if (!x) return;
    if constexpr (kWide == 4) {
      const Quad four = x.fetch_four(i);
      for (int w = 0; w < 4; ++w) at[w] = four.at[w];
    } else {
      at[0] = x.fetch(i);
    }
  }
};
// Makes numbers of the kWide elements of x at(0), at(1), ..., which have been fetched.
template <int kWide, class At>
__device__ void widen(const Data& x, At at) {
  if constexpr (kWide == 4) {
    const Quad four = x.widened_four({at(0), at(1), at(2), at(3)});
    for (int w = 0; w < 4; ++w) at(w) = four.at[w];
  } else {
    at(0) = x.widened(at(0));
  }
}
template <int kWide>
__device__ void store_wide(const Result& y, std::int64_t i, const float (&values)[kWide]) {
  if constexpr (kWide == 4) {
    y.store_four(i, values);
  } else {
    y.store(i, values[0]);
  }
}

// A thread's share of tokens: its columns, and every slots-th row.
struct TokenPlace {
  int slot, slots;
  std::int64_t column, strip_row;  // the index of the piece of the strip's rows
  bool exists;

  __device__ TokenPlace(const ColumnSizes& sizes, const Tiling& tiling, int wide) {
    const int lane = int(threadIdx.x) % tiling.lanes;
    slot = int(threadIdx.x) / tiling.lanes;
    slots = kColumnBlock / tiling.lanes;
    column = (blockIdx.x % tiling.strips * tiling.lanes + lane) * wide;
    strip_row = blockIdx.x / tiling.strips;
    exists = column < sizes.channels;
  }
  // The number of this thread's next rows before `last`, but at most `most`.
  __device__ int rows_until(std::int64_t row, std::int64_t last, int most) const {
    const std::int64_t rows = (last - row + slots - 1) / slots;
    return rows < most ? int(rows) : most;
  }
};

// Elements [first, last) of an image, for part number `unit` among the parts of all images.
struct ImagePart {
  std::int64_t image, first, last;

  __device__ ImagePart(const ColumnSizes& sizes, const Tiling& tiling, std::int64_t unit) {
    image = unit / tiling.parts;
    first = unit % tiling.parts * tiling.part;
    last = first + tiling.part < sizes.inner ? first + tiling.part : sizes.inner;
  }
};

}  // namespace keel::cuda

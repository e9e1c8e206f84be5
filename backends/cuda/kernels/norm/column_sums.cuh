// Sums over all elements of each column or channel, in two stages: first the sums of chunks of a
// column, in double, then the sum of the chunks' sums in order. Chunks depend on the sizes alone,
// so results have the same bits from run to run.
#pragma once

#include <algorithm>

#include "backends/cuda/kernels/norm/tiling.cuh"
#include "backends/cuda/kernels/warp.cuh"

namespace keel::cuda {

// A class of Terms defines the sums:
//   kTensors, tensors   the tensors that each element reads, once; an absent one reads as 0
//   kSums               how many doubles belong to a column
//   join(sums, others)  adds another part of a column; zeros stand for a part without elements
//   add_batch(terms, values, batch, channel, sums)  adds the terms of some elements of a column
// Most are plain sums of terms(values of an element, outer index, channel, sums).
struct PlainSums {
  template <int kSums>
  __device__ static void join(double (&sums)[kSums], const double (&others)[kSums]) {
    for (int s = 0; s < kSums; ++s) sums[s] += others[s];
  }
};

// The first `count` of a thread's elements exist; `row` and `step` give the outer index of each.
struct Batch {
  int count;
  std::int64_t row, step;
  __device__ std::int64_t row_of(int i) const { return row + i * step; }
};

template <class Terms, int kCount>
__device__ void add_batch(const Terms& terms, const float (&values)[Terms::kTensors][kCount],
                          const Batch& batch, std::int64_t channel, double (&sums)[Terms::kSums]) {
  for (int i = 0; i < kCount; ++i) {
    if (i >= batch.count) continue;
    float of[Terms::kTensors];
    for (int t = 0; t < Terms::kTensors; ++t) of[t] = values[t][i];
    terms(of, batch.row_of(i), channel, sums);
  }
}

// The units of a column (rows, or parts of images) are cut into `count` chunks of `length` units.
struct Chunks {
  std::int64_t count, length;
};
// There are enough chunks for all multiprocessors of a large device, with at least 64 rows or 2048
// elements each. Their sums stay within 1 MiB, or 1 / 25 of x if that is more.
inline Chunks chunks_of(const ColumnSizes& sizes, int sums) {
  const Tiling tiling = tiling_of(sizes);
  const std::int64_t wanted = ceil_div(kBlocksWanted, std::max<std::int64_t>(tiling.strips, 1));
  const std::int64_t worthwhile = ceil_div(tiling.units, sizes.inner == 1 ? 64 : 8);
  const std::int64_t doubles = std::max<std::int64_t>(sums * sizes.channels, 1);
  const std::int64_t in_memory = std::max((1 << 17) / doubles, sizes.count() / 256);
  const std::int64_t most = std::max<std::int64_t>(1, std::min({wanted, worthwhile, in_memory}));
  const std::int64_t length = std::max<std::int64_t>(1, ceil_div(tiling.units, most));
  return {std::max<std::int64_t>(1, ceil_div(tiling.units, length)), length};
}

// The number of doubles of workspace for `sums` sums of every column.
inline std::int64_t partial_sums(const ColumnSizes& sizes, int sums) {
  return chunks_of(sizes, sums).count * sums * sizes.channels;
}

// Joins the sums of the block's threads, kWide columns each. Threads of the same lane have the same
// columns; the first thread of a lane gets the result.
template <class Terms, int kWide>
__device__ void join_slots(double (&sums)[kWide][Terms::kSums], int lanes) {
  constexpr int kSums = Terms::kSums;
  __shared__ Shared<double, kWide * kSums * kColumnBlock> shared;
  const int thread = int(threadIdx.x);
  for (int half = kColumnBlock / 2; half >= lanes; half /= 2) {
    for (int i = 0; i < kWide * kSums; ++i) {
      if (thread >= half && thread < 2 * half)
        shared[i * kColumnBlock + thread] = sums[i / kSums][i % kSums];
    }
    __syncthreads();
    for (int w = 0; w < kWide && thread < half; ++w) {
      double others[kSums];
      for (int s = 0; s < kSums; ++s) {
        others[s] = shared[(w * kSums + s) * kColumnBlock + thread + half];
      }
      Terms::join(sums[w], others);
    }
  }
}

// For tokens: a block sums a chunk of the rows of neighbouring columns.
template <class Terms, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    chunk_sums_of_tokens(ColumnSizes sizes, Tiling tiling, Chunks chunks, Terms terms,
                         Global<double> partial) {
  constexpr int kSums = Terms::kSums, kRows = 8 / Terms::kTensors;
  const TokenPlace place(sizes, tiling, kWide);
  const std::int64_t first = place.strip_row * chunks.length;
  const std::int64_t last =
      first + chunks.length < sizes.outer ? first + chunks.length : sizes.outer;
  double sums[kWide][kSums] = {};
  for (std::int64_t row = first + place.slot; row < last && place.exists;
       row += kRows * place.slots) {
    float values[kWide][Terms::kTensors][kRows];
    const Batch batch{place.rows_until(row, last, kRows), row, place.slots};
    for (int i = 0; i < kRows; ++i) {
      if (i >= batch.count) continue;
      const std::int64_t at = batch.row_of(i) * sizes.channels + place.column;
      for (int t = 0; t < Terms::kTensors; ++t) {
        const Wide<kWide> wide(terms.tensors[t], at);
        for (int w = 0; w < kWide; ++w) values[w][t][i] = wide.at[w];
      }
    }
    for (int i = 0; i < kRows * Terms::kTensors; ++i) {
      const int t = i / kRows;
      if (i % kRows >= batch.count) continue;
      widen<kWide>(terms.tensors[t], [&](int w) -> float& { return values[w][t][i % kRows]; });
    }
    for (int w = 0; w < kWide; ++w) {
      add_batch(terms, values[w], batch, place.column + w, sums[w]);
    }
  }
  join_slots<Terms>(sums, tiling.lanes);
  if (place.slot > 0 || !place.exists) return;
  for (int i = 0; i < kWide * kSums; ++i) {
    partial[(place.strip_row * kSums + i % kSums) * sizes.channels + place.column + i / kSums] =
        sums[i / kSums][i % kSums];
  }
}

// For images: a block sums a chunk of one channel, and each of its warps sums parts of images.
template <class Terms, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    chunk_sums_of_images(ColumnSizes sizes, Tiling tiling, Chunks chunks, Terms terms,
                         Global<double> partial) {
  constexpr int kSums = Terms::kSums, kTurns = 8 / kWide, kCount = kTurns * kWide;
  const std::int64_t channel = blockIdx.x % sizes.channels, chunk = blockIdx.x / sizes.channels;
  const std::int64_t first = chunk * chunks.length, end = first + chunks.length;
  const std::int64_t last = end < tiling.units ? end : tiling.units;
  const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  double sums[1][kSums] = {};
  for (std::int64_t unit = first + warp; unit < last; unit += kColumnBlock / kWarp) {
    const ImagePart part(sizes, tiling, unit);
    const std::int64_t start = (part.image * sizes.channels + channel) * sizes.inner;
    for (std::int64_t e = part.first + kWide * lane; e < part.last; e += kTurns * kWide * kWarp) {
      float values[Terms::kTensors][kCount];
      const std::int64_t left = (part.last - e + kWide * kWarp - 1) / (kWide * kWarp);
      const Batch batch{left < kTurns ? int(left) * kWide : kCount, part.image, 0};
      for (int i = 0; i < kTurns * Terms::kTensors; ++i) {
        const int turn = i % kTurns, t = i / kTurns;
        if (turn * kWide >= batch.count) continue;
        const Wide<kWide> wide(terms.tensors[t], start + e + turn * kWide * kWarp);
        for (int w = 0; w < kWide; ++w) values[t][turn * kWide + w] = wide.at[w];
      }
      for (int i = 0; i < kTurns * Terms::kTensors; ++i) {
        if (i % kTurns * kWide >= batch.count) continue;
        float* const from = values[i / kTurns] + i % kTurns * kWide;
        widen<kWide>(terms.tensors[i / kTurns], [=](int w) -> float& { return from[w]; });
      }
      add_batch(terms, values, batch, channel, sums[0]);
    }
  }
  join_slots<Terms>(sums, 1);
  if (threadIdx.x > 0) return;
  for (int s = 0; s < kSums; ++s) {
    partial[(chunk * kSums + s) * sizes.channels + channel] = sums[0][s];
  }
}

// Calls finish(column, sums) for every column, from partial sums (chunks, kSums, columns). A block
// handles 32 columns, and each of its warps joins every kFoldWarps-th chunk. Few blocks run, so
// no other block hides the time while a load is on its way: kFoldLoads chunks are loaded at a time.
inline constexpr int kFoldWarps = 16, kFoldLoads = 8;
template <class Join, int kSums, class Finish>
__global__ void __launch_bounds__(kWarp* kFoldWarps)
    join_chunks(std::int64_t columns, std::int64_t chunks, Global<const double> partial,
                Finish finish) {
  constexpr int kBlock = kWarp * kFoldWarps;
  __shared__ Shared<double, kSums * kBlock> shared;
  const int lane = int(threadIdx.x) % kWarp, warp = int(threadIdx.x) / kWarp;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarp + lane;
  double sums[kSums] = {};
  for (std::int64_t first = warp; first < chunks; first += kFoldWarps * kFoldLoads) {
    double others[kFoldLoads][kSums] = {};
    KEEL_UNROLL
    for (int i = 0; i < kFoldLoads; ++i) {
      const std::int64_t chunk = first + i * kFoldWarps;
      if (chunk >= chunks || column >= columns) continue;
      for (int s = 0; s < kSums; ++s) {
        others[i][s] = partial[(chunk * kSums + s) * columns + column];
      }
    }
    KEEL_UNROLL
    for (int i = 0; i < kFoldLoads; ++i) {
      if (first + i * kFoldWarps < chunks) Join::join(sums, others[i]);
    }
  }
  for (int s = 0; s < kSums; ++s) shared[s * kBlock + int(threadIdx.x)] = sums[s];
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  double others[kSums];
  KEEL_UNROLL
  for (int w = 1; w < kFoldWarps; ++w) {
    for (int s = 0; s < kSums; ++s) others[s] = shared[s * kBlock + w * kWarp + lane];
    if (w < chunks) Join::join(sums, others);
  }
  finish(column, sums);
}
template <class Join, int kSums, class Finish>
void finish_chunks(std::int64_t columns, std::int64_t chunks, Global<const double> partial,
                   const Finish& finish) {
  launch(join_chunks<Join, kSums, Finish>, {ceil_div(columns, kWarp), kWarp * kFoldWarps}, columns,
         chunks, partial, finish);
}

// Calls finish(column, sums) on the device with the sums over all elements of every column.
template <class Terms, class Finish>
void column_sums(const ColumnSizes& sizes, const Terms& terms, Global<double> partial,
                 const Finish& finish) {
  const Tiling tiling = tiling_of(sizes);
  const Chunks chunks = chunks_of(sizes, Terms::kSums);
  const Grid grid{tiling.strips * chunks.count, kColumnBlock};
  const bool is_image = sizes.inner > 1, is_wide = tiling.wide == 4;
  const auto run = is_image
                       ? is_wide ? chunk_sums_of_images<Terms, 4> : chunk_sums_of_images<Terms, 1>
                   : is_wide ? chunk_sums_of_tokens<Terms, 4>
                             : chunk_sums_of_tokens<Terms, 1>;
  launch(run, grid, sizes, tiling, chunks, terms, partial);
  finish_chunks<Terms, Terms::kSums>(sizes.channels, chunks.count, partial, finish);
}

// Writes each sum to a vector, if that vector is wanted.
template <int kSums>
struct StoreSums {
  Global<float> to[kSums];

  __device__ void operator()(std::int64_t column, const double (&sums)[kSums]) const {
    for (int s = 0; s < kSums; ++s) {
      if (to[s]) to[s][column] = float(sums[s]);
    }
  }
};

}  // namespace keel::cuda

// Sums over all elements of each column or channel, in two stages: chunks of a column are added up
// in double, then the chunks' sums in order. The chunks depend on the sizes alone, so that results
// are the same bits from run to run.
#pragma once

#include "backends/cuda/kernels/warp.cuh"
#include "src/ops/norm/batch_norm.h"

namespace keel::cuda {

inline constexpr int kColumnsABlock = 32, kRowsAtOnce = 8;
inline constexpr int kColumnBlock = kColumnsABlock * kRowsAtOnce;  // threads
inline constexpr std::int64_t kMaxChunks = 64, kLeastChunk = 256;

inline std::int64_t aligned_bytes(std::int64_t bytes) { return ceil_div(bytes, 256) * 256; }

// A column's elements, cut into `count` chunks of `length`.
struct Chunks {
  std::int64_t count, length;
};
inline Chunks chunks_of(const ColumnSizes& sizes) {
  const std::int64_t most =
      std::max<std::int64_t>(1, std::min(kMaxChunks, ceil_div(sizes.count(), kLeastChunk)));
  const std::int64_t length = std::max<std::int64_t>(1, ceil_div(sizes.count(), most));
  return {ceil_div(sizes.count(), length), length};
}

// Doubles of workspace that `sums` sums of every column need.
inline std::int64_t partial_sums(const ColumnSizes& sizes, int sums) {
  return chunks_of(sizes).count * sums * sizes.channels;
}

// Tokens: 32 neighbouring columns a block, one a lane, so that a warp reads them in one access;
// each of the block's warps takes every eighth row of the chunk.
// terms(element, row, column, sums) adds what an element contributes.
template <class Terms>
__global__ void __launch_bounds__(kColumnBlock, 2)
    chunk_sums_of_tokens(ColumnSizes sizes, Chunks chunks, Terms terms, Global<double> partial) {
  constexpr int kSums = Terms::kSums;
  __shared__ Shared<double, kSums * kColumnBlock> shared;
  const unsigned strips = unsigned((sizes.channels + kColumnsABlock - 1) / kColumnsABlock);
  const std::int64_t chunk = blockIdx.x / strips;
  const int lane = int(threadIdx.x) % kColumnsABlock, warp = int(threadIdx.x) / kColumnsABlock;
  const std::int64_t column = std::int64_t{blockIdx.x % strips} * kColumnsABlock + lane;
  const std::int64_t first = chunk * chunks.length;
  const std::int64_t last =
      first + chunks.length < sizes.outer ? first + chunks.length : sizes.outer;
  double sums[kSums] = {};
  if (column < sizes.channels) {
    for (std::int64_t row = first + warp; row < last; row += kRowsAtOnce) {
      terms(row * sizes.channels + column, row, column, sums);
    }
  }
  for (int s = 0; s < kSums; ++s) shared[s * kColumnBlock + int(threadIdx.x)] = sums[s];
  __syncthreads();
  if (warp > 0 || column >= sizes.channels) return;
  for (int s = 0; s < kSums; ++s) {
    double total = 0;
    for (int w = 0; w < kRowsAtOnce; ++w)
      total += shared[s * kColumnBlock + w * kColumnsABlock + lane];
    partial[(chunk * kSums + s) * sizes.channels + column] = total;
  }
}

// Images: a block a chunk of one channel, whose elements lie in stretches of `inner`.
template <class Terms>
__global__ void __launch_bounds__(kColumnBlock, 2)
    chunk_sums_of_images(ColumnSizes sizes, Chunks chunks, Terms terms, Global<double> partial) {
  constexpr int kSums = Terms::kSums;
  const std::int64_t channel = blockIdx.x % sizes.channels, chunk = blockIdx.x / sizes.channels;
  const std::int64_t count = sizes.outer * sizes.inner, first = chunk * chunks.length;
  const std::int64_t last = first + chunks.length < count ? first + chunks.length : count;
  double sums[kSums] = {};
  for (std::int64_t e = first + threadIdx.x; e < last; e += kColumnBlock) {
    const std::int64_t image = e / sizes.inner;
    terms((image * sizes.channels + channel) * sizes.inner + e % sizes.inner, image, channel, sums);
  }
  for (int s = 0; s < kSums; ++s) {
    const double total = over_block<kColumnBlock>(sums[s], Add());
    if (threadIdx.x == 0) partial[(chunk * kSums + s) * sizes.channels + channel] = total;
  }
}

// finish(column, sums) for every column, of partial sums (chunks, kSums, columns): 32 columns a
// block, whose warps add up every kFoldWarps-th chunk.
inline constexpr int kFoldWarps = 16;
template <int kSums, class Finish>
__global__ void __launch_bounds__(kColumnsABlock* kFoldWarps)
    join_chunks(std::int64_t columns, std::int64_t chunks, Global<const double> partial,
                Finish finish) {
  constexpr int kBlock = kColumnsABlock * kFoldWarps;
  __shared__ Shared<double, kSums * kBlock> shared;
  const int lane = int(threadIdx.x) % kColumnsABlock, warp = int(threadIdx.x) / kColumnsABlock;
  const std::int64_t column = std::int64_t{blockIdx.x} * kColumnsABlock + lane;
  double sums[kSums] = {};
  for (std::int64_t chunk = warp; chunk < chunks && column < columns; chunk += kFoldWarps) {
    for (int s = 0; s < kSums; ++s) sums[s] += partial[(chunk * kSums + s) * columns + column];
  }
  for (int s = 0; s < kSums; ++s) shared[s * kBlock + int(threadIdx.x)] = sums[s];
  __syncthreads();
  if (warp > 0 || column >= columns) return;
  for (int s = 0; s < kSums; ++s) {
    for (int w = 1; w < kFoldWarps; ++w) sums[s] += shared[s * kBlock + w * kColumnsABlock + lane];
  }
  finish(column, sums);
}
template <int kSums, class Finish>
void finish_chunks(std::int64_t columns, std::int64_t chunks, Global<const double> partial,
                   const Finish& finish) {
  launch(join_chunks<kSums, Finish>,
         {ceil_div(columns, kColumnsABlock), kColumnsABlock * kFoldWarps}, columns, chunks, partial,
         finish);
}

// Calls finish(column, sums) on the device with the sums over all elements of every column of
// terms(element index, outer index, column, sums).
template <class Terms, class Finish>
void column_sums(const ColumnSizes& sizes, const Terms& terms, Global<double> partial,
                 const Finish& finish) {
  const Chunks chunks = chunks_of(sizes);
  if (sizes.inner == 1) {
    const std::int64_t strips = ceil_div(sizes.channels, kColumnsABlock);
    launch(chunk_sums_of_tokens<Terms>, {strips * chunks.count, kColumnBlock}, sizes, chunks, terms,
           partial);
  } else {
    launch(chunk_sums_of_images<Terms>, {sizes.channels * chunks.count, kColumnBlock}, sizes,
           chunks, terms, partial);
  }
  finish_chunks<Terms::kSums>(sizes.channels, chunks.count, partial, finish);
}

// Writes each sum to a vector, where that is wanted.
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

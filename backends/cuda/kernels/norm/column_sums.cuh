// Sums over all elements of each column or channel, in two stages: first the sums of chunks of a
// column, in double, then the sum of the chunks' sums in order. Chunks depend only on the sizes,
// so results have the same bits from run to run.
#pragma once

#include <algorithm>

#include "backends/cuda/kernels/norm/tiling.cuh"
#include "backends/cuda/kernels/warp.cuh"

namespace keel::cuda {

// A class of Terms defines the sums:
//   kTensors, tensors   the tensors that each element reads, once
//   kSums               how many doubles belong to a column
//   kept                if it is there, the rows that take part
//   Channel             what the terms need of a channel
//   channel(c)          the Channel of c; with kAnchored: channel(anchor), where `anchor` is one of
//                       the channel's kept elements
//   count(kept, left_out, sums)  if it is there, adds the numbers of elements of a column
//   terms(values of an element, step, channel, sums)  adds the terms of an element. Where none
//                       exists the values are 0, and must add 0: terms that are 0 for values
//                       of 0 need not ask whether step.exists
// With kAnchored, sums of a part of a column are about an anchor. close(sums, anchor) makes sums of
// them that are about none, and open(sums, anchor) does the reverse.
struct PlainSums {
  static constexpr bool kAnchored = false;
  struct Channel {
    std::int64_t index;
  };
  __device__ static Channel channel(std::int64_t c) { return {c}; }
};

// Adds up the elements of all steps. load(channels) makes the Channels, when the first elements are
// on their way already; while some are added, the next are on theirs.
template <bool kMasked, class Terms, int kWide, int kChannels, class TileSteps, class Load>
__device__ void add_steps(const Terms& terms, TileSteps steps, Load load,
                          typename Terms::Channel (&channels)[kChannels],
                          double (&sums)[kWide][Terms::kSums]) {
  using Turned = Batch<Terms, kWide, Terms::kTensors == 1 ? 4 : 2>;
  if (!steps.go_on()) return;
  int kept = 0, left_out = 0;
  const auto add = [&](Turned& batch) {
    batch.template each<kMasked>(
        terms, [&](const TileStep& step, const float(&values)[kWide][Terms::kTensors]) {
          kept += step.is_kept;
          left_out += step.is_left_out;
          for (int w = 0; w < kWide; ++w) terms(values[w], step, channels[w % kChannels], sums[w]);
        });
  };
  Turned now(terms, steps);
  load(channels);
  while (steps.go_on()) {
    const Turned next(terms, steps);
    add(now);
    now = next;
  }
  add(now);
  if constexpr (requires { terms.count(0.0, 0.0, sums[0]); }) {
    for (int w = 0; w < kWide; ++w) terms.count(kept, left_out, sums[w]);
  }
}
template <class Terms, int kWide, int kChannels, class TileSteps, class Load>
__device__ void add_steps(const Terms& terms, const TileSteps& steps, Load load,
                          typename Terms::Channel (&channels)[kChannels],
                          double (&sums)[kWide][Terms::kSums]) {
  if constexpr (requires { terms.kept; }) {
    if (terms.kept.mask) return add_steps<true>(terms, steps, load, channels, sums);
  }
  add_steps<false>(terms, steps, load, channels, sums);
}

// kWide neighbouring elements of x.
template <int kWide>
struct Anchors : Wide<kWide> {
  __device__ Anchors(const Data& x, std::int64_t i) : Wide<kWide>(x, i) {
    widen<kWide>(x, [&](int w) -> float& { return this->at[w]; });
  }
};

// The first kept row of [first, last), or -1 if there is none. All threads of the block take part.
struct Smaller {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a < b ? a : b;
  }
};
__device__ inline std::int64_t first_kept(const KeptRows& kept, std::int64_t first,
                                          std::int64_t last) {
  if (!kept.mask) return first < last ? first : -1;
  std::int64_t row = first + threadIdx.x;
  while (row < last && !kept(row)) row += kColumnBlock;
  row = over_block<kColumnBlock>(row, Smaller());
  return row < last ? row : -1;
}

// The units of a column (rows, or groups of images) are cut into `count` chunks of `length` units.
struct Chunks {
  std::int64_t count, length;
};
// There are enough chunks for all multiprocessors of a large device, with at least 64 rows or 2048
// elements each. Their sums take 1 MiB at the most or, if that is more, a double of each sum for
// 256 elements of x. Where there are several chunks, all but the last have the same number of
// elements for each thread.
inline Chunks chunks_of(const ColumnSizes& sizes, int sums) {
  const Tiling tiling = tiling_of(sizes);
  const bool is_image = sizes.inner > 1;
  const std::int64_t units = sizes.outer * tiling.groups;
  const std::int64_t step = is_image ? kColumnBlock : tiling.slots();
  const std::int64_t wanted = kBlocksWanted / std::max<std::int64_t>(tiling.strips, 1);
  const std::int64_t least = is_image ? 2048 / tiling.wide : std::max<std::int64_t>(64, 2 * step);
  const std::int64_t doubles = std::max<std::int64_t>(sums * sizes.channels, 1);
  const std::int64_t in_memory = std::max((1 << 17) / doubles, sizes.count() / 256);
  const std::int64_t most =
      std::max<std::int64_t>(1, std::min({wanted, ceil_div(units, least), in_memory}));
  if (most == 1) return {1, units};
  const std::int64_t length = ceil_div(ceil_div(units, most), step) * step;
  return {ceil_div(units, length), length};
}

// The number of doubles of workspace for `sums` sums of every column.
inline std::int64_t partial_sums(const ColumnSizes& sizes, int sums) {
  return chunks_of(sizes, sums).count * sums * sizes.channels;
}

// Adds up the sums of the block's threads, kWide columns each. Threads of the same lane have the
// same columns; the first thread of a lane gets the result.
template <int kWide, int kSums>
__device__ void join_slots(double (&sums)[kWide][kSums], int lanes) {
  __shared__ Shared<double, kWide * kSums * kColumnBlock> shared;
  const int thread = int(threadIdx.x);
  for (int half = kColumnBlock / 2; half >= lanes; half /= 2) {
    for (int i = 0; i < kWide * kSums; ++i) {
      if (thread >= half && thread < 2 * half)
        shared[i * kColumnBlock + thread] = sums[i / kSums][i % kSums];
    }
    __syncthreads();
    for (int i = 0; i < kWide * kSums && thread < half; ++i) {
      sums[i / kSums][i % kSums] += shared[i * kColumnBlock + thread + half];
    }
  }
}

// For tokens: a block sums a chunk of the rows of neighbouring columns.
template <class Terms, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    chunk_sums_of_tokens(ColumnSizes sizes, Tiling tiling, Chunks chunks, Terms terms,
                         Global<double> partial) {
  constexpr int kSums = Terms::kSums;
  const TokenPlace place(sizes, tiling, kWide);
  const std::int64_t first = place.strip_row * chunks.length, end = first + chunks.length;
  const std::int64_t last = end < sizes.outer ? end : sizes.outer;
  std::int64_t anchor = -1;
  if constexpr (Terms::kAnchored) anchor = first_kept(terms.kept, first, last);
  double sums[kWide][kSums] = {};
  typename Terms::Channel channels[kWide] = {};
  const auto load = [&](auto& of) {
    if constexpr (Terms::kAnchored) {
      if (anchor < 0) return;
      const Anchors<kWide> anchors(terms.tensors[0], anchor * sizes.channels + place.column);
      for (int w = 0; w < kWide; ++w) of[w] = Terms::channel(anchors.at[w]);
    } else {
      for (int w = 0; w < kWide; ++w) of[w] = terms.channel(place.column + w);
    }
  };
  add_steps(terms, TokenSteps(sizes, tiling, place, first, last), load, channels, sums);
  join_slots(sums, tiling.lanes());
  if (place.slot > 0 || !place.exists) return;
  if constexpr (Terms::kAnchored) {
    for (int w = 0; w < kWide; ++w) Terms::close(sums[w], channels[w].anchor);
  }
  for (int i = 0; i < kWide * kSums; ++i) {
    partial[(place.strip_row * kSums + i % kSums) * sizes.channels + place.column + i / kSums] =
        sums[i / kSums][i % kSums];
  }
}

// For images: a block sums a chunk of one channel.
template <class Terms, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    chunk_sums_of_images(ColumnSizes sizes, Tiling tiling, Chunks chunks, Terms terms,
                         Global<double> partial) {
  constexpr int kSums = Terms::kSums;
  const Divided block(blockIdx.x, sizes.channels);
  const std::int64_t channel = block.rest, chunk = block.quotient;
  const std::int64_t first = chunk * chunks.length, end = first + chunks.length;
  const std::int64_t units = sizes.outer * tiling.groups, last = end < units ? end : units;
  std::int64_t anchor = -1;
  if constexpr (Terms::kAnchored) {
    const std::int64_t first_image = Divided(first, tiling.groups).quotient;
    const std::int64_t image = first_kept(
        terms.kept, first_image, first < last ? Divided(last - 1, tiling.groups).quotient + 1 : 0);
    const std::int64_t rest = image == first_image ? first - image * tiling.groups : 0;
    if (image >= 0) {
      anchor = (image * sizes.channels + channel) * sizes.inner + rest * tiling.wide;
    }
  }
  double sums[kWide][kSums] = {};
  typename Terms::Channel channels[1] = {};
  const auto load = [&](auto& of) {
    if constexpr (Terms::kAnchored) {
      if (anchor >= 0) of[0] = Terms::channel(Anchors<kWide>(terms.tensors[0], anchor).at[0]);
    } else {
      of[0] = terms.channel(channel);
    }
  };
  add_steps(terms, ImageSteps(sizes, tiling, channel, first, last), load, channels, sums);
  double own[1][kSums];
  for (int s = 0; s < kSums; ++s) {
    own[0][s] = sums[0][s];
    for (int w = 1; w < kWide; ++w) own[0][s] += sums[w][s];
  }
  join_slots(own, 1);
  if (threadIdx.x > 0) return;
  if constexpr (Terms::kAnchored) Terms::close(own[0], channels[0].anchor);
  for (int s = 0; s < kSums; ++s) {
    partial[(chunk * kSums + s) * sizes.channels + channel] = own[0][s];
  }
}

// Calls finish(column, sums) for every column, from partial sums (chunks, kSums, columns). A block
// handles kFoldColumns neighbouring columns, two sectors of memory: with more, the columns of most
// norms would give few multiprocessors work. Its groups of as many lanes, slots, join one chunk in
// as many as there are slots. No other block hides the time while a load is on its way, so
// kFoldLoads chunks are loaded at a time. Sums that need an anchor have the mean of the first chunk
// that is not empty. finish.prefetch, if it is there, asks for what `finish` will read.
inline constexpr int kFoldWarps = 16, kFoldColumns = 8, kFoldLoads = 3;
inline constexpr int kFoldSlots = kWarp / kFoldColumns;  // of a warp

// The warps of a block: a power of two, and no more than it takes to load all chunks at once, or
// kFoldWarps.
inline int fold_warps(std::int64_t chunks) {
  int warps = 1;
  while (warps < kFoldWarps && warps * kFoldSlots * kFoldLoads < chunks) warps *= 2;
  return warps;
}
template <class Terms, int kSums, class Finish>
__global__ void __launch_bounds__(kWarp* kFoldWarps)
    join_chunks(std::int64_t columns, std::int64_t chunks, Global<const double> partial,
                Finish finish) {
  __shared__ Shared<double, kSums * kFoldWarps * kFoldColumns> shared;
  const int thread = int(threadIdx.x), lane = thread % kWarp, warp = thread / kWarp;
  const int own = thread % kFoldColumns;
  const int warps = int(blockDim.x) / kWarp, slots = warps * kFoldSlots;
  const std::int64_t column = std::int64_t{blockIdx.x} * kFoldColumns + own;
  const auto at = [&](std::int64_t chunk, int s) {
    return column < columns ? partial[(chunk * kSums + s) * columns + column] : 0;
  };
  if constexpr (requires { finish.prefetch(column); }) {
    if (warp == warps - 1 && lane == own && column < columns) finish.prefetch(column);
  }
  double sums[kSums] = {}, count = 0, anchor = 0;
  if constexpr (Terms::kAnchored) count = at(0, 0), anchor = at(0, 1);
  for (std::int64_t first = thread / kFoldColumns; first < chunks; first += slots * kFoldLoads) {
    double others[kFoldLoads][kSums] = {};
    KEEL_UNROLL
    for (int i = 0; i < kFoldLoads; ++i) {
      const std::int64_t chunk = first + i * slots;
      if (chunk >= chunks || column >= columns) continue;
      for (int s = 0; s < kSums; ++s) others[i][s] = at(chunk, s);
    }
    if constexpr (Terms::kAnchored) {
      for (std::int64_t full = 1; count == 0 && full < chunks; ++full) {
        count = at(full, 0), anchor = at(full, 1);
      }
    }
    KEEL_UNROLL
    for (int i = 0; i < kFoldLoads; ++i) {
      if constexpr (Terms::kAnchored) Terms::open(others[i], anchor);
      for (int s = 0; s < kSums; ++s) sums[s] += others[i][s];
    }
  }
  // The slots of a warp, then those of all warps.
  for (int other = kWarp / 2; other >= kFoldColumns; other /= 2) {
    for (double& sum : sums) sum += __shfl_xor_sync(kAllLanes, sum, other);
  }
  const auto place = [=](int s, int of_warp) {
    return (s * kFoldWarps + of_warp) * kFoldColumns + own;
  };
  for (int half = warps / 2; half > 0; half /= 2) {
    if (warp >= half && warp < 2 * half && lane == own) {
      for (int s = 0; s < kSums; ++s) shared[place(s, warp)] = sums[s];
    }
    __syncthreads();
    for (int s = 0; s < kSums && warp < half; ++s) sums[s] += shared[place(s, warp + half)];
  }
  if (warp > 0 || lane != own || column >= columns) return;
  if constexpr (Terms::kAnchored) Terms::close(sums, anchor);
  finish(column, sums);
}
template <class Terms, int kSums, class Finish>
void finish_chunks(std::int64_t columns, std::int64_t chunks, Global<const double> partial,
                   const Finish& finish) {
  launch(join_chunks<Terms, kSums, Finish>,
         {ceil_div(columns, kFoldColumns), kWarp * fold_warps(chunks)}, columns, chunks, partial,
         finish);
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

// Shared code of column norms: the rows that a mask keeps, memory for one value a channel, and
// loops over all elements with the data of their channel at hand.
#pragma once

#include "backends/cuda/kernels/norm/column_sums.cuh"

namespace keel::cuda {

// Tells which rows take part: all, or those where the mask u8 (outer) is not 0.
struct KeptRows {
  Global<const std::uint8_t> mask;
  __device__ bool operator()(std::int64_t row) const { return !mask || mask[row] != 0; }
};
inline KeptRows kept_rows(const TensorRef& mask) { return {global<const std::uint8_t>(mask)}; }

// A node's workspace: partial sums, then vectors with one double for each channel.
class ColumnScratch {
 public:
  ColumnScratch(const Binding& b, const ColumnSizes& sizes, int sums)
      : binding_(b), sizes_(sizes), sums_(sums) {}

  Global<double> partial() const {
    return workspace<double>(binding_, partial_sums(sizes_, sums_));
  }
  Global<double> vector(int i) const {
    return workspace<double>(binding_, sizes_.channels,
                             partial_bytes(sizes_, sums_) + i * vector_bytes(sizes_));
  }
  static std::int64_t bytes(const ColumnSizes& sizes, int sums, int vectors) {
    return partial_bytes(sizes, sums) + vectors * vector_bytes(sizes);
  }

 private:
  static std::int64_t partial_bytes(const ColumnSizes& sizes, int sums) {
    return aligned_bytes(partial_sums(sizes, sums) * std::int64_t{sizeof(double)});
  }
  static std::int64_t vector_bytes(const ColumnSizes& sizes) {
    return aligned_bytes(sizes.channels * std::int64_t{sizeof(double)});
  }

  const Binding& binding_;
  ColumnSizes sizes_;
  int sums_;
};

// Sums (kinds, channels) given to a node.
struct GivenSums {
  Global<const double> sums;
  std::int64_t channels;
  __device__ double at(int kind, std::int64_t c) const { return sums[kind * channels + c]; }
};

// `f` computes an element of f.out from those of its tensors, each read once. It has kTensors and
// tensors, a type Channel, f.channel(c), and f(values, row, channel), where row is the outer index.
// An absent tensor reads as 0. For tokens: a thread handles only some columns.
template <class F, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    map_tokens(ColumnSizes sizes, Tiling tiling, F f) {
  constexpr int kRows = 4;
  const TokenPlace place(sizes, tiling, kWide);
  if (!place.exists) return;
  typename F::Channel channels[kWide];
  for (int w = 0; w < kWide; ++w) channels[w] = f.channel(place.column + w);
  const std::int64_t length = 2 * kRows * place.slots, first = place.strip_row * length;
  const std::int64_t last = first + length < sizes.outer ? first + length : sizes.outer;
  for (std::int64_t row = first + place.slot; row < last; row += kRows * place.slots) {
    float values[kRows][kWide][F::kTensors], result[kWide];
    const int count = place.rows_until(row, last, kRows);
    for (int i = 0; i < kRows * F::kTensors; ++i) {
      const int r = i / F::kTensors, t = i % F::kTensors;
      if (r >= count) continue;
      const Wide<kWide> wide(f.tensors[t], (row + r * place.slots) * sizes.channels + place.column);
      for (int w = 0; w < kWide; ++w) values[r][w][t] = wide.at[w];
    }
    for (int i = 0; i < kRows * F::kTensors; ++i) {
      const int r = i / F::kTensors, t = i % F::kTensors;
      if (r >= count) continue;
      widen<kWide>(f.tensors[t], [&](int w) -> float& { return values[r][w][t]; });
    }
    for (int r = 0; r < kRows; ++r) {
      if (r >= count) continue;
      const std::int64_t own = row + r * place.slots;
      for (int w = 0; w < kWide; ++w) result[w] = f(values[r][w], own, channels[w]);
      store_wide<kWide>(f.out, own * sizes.channels + place.column, result);
    }
  }
}

// For images: a warp handles a part of one channel of one image.
template <class F, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    map_images(ColumnSizes sizes, Tiling tiling, F f) {
  const std::int64_t warp =
      std::int64_t{blockIdx.x} * (kColumnBlock / kWarp) + int(threadIdx.x) / kWarp;
  const std::int64_t plane = warp / tiling.parts;  // one channel of one image
  const int lane = int(threadIdx.x) % kWarp;
  if (plane >= sizes.outer * sizes.channels) return;
  const ImagePart part(sizes, tiling, warp % tiling.parts);
  const typename F::Channel channel = f.channel(plane % sizes.channels);
  for (std::int64_t e = part.first + kWide * lane; e < part.last; e += kWide * kWarp) {
    const std::int64_t at = plane * sizes.inner + e;
    float values[kWide][F::kTensors], result[kWide];
    for (int t = 0; t < F::kTensors; ++t) {
      const Wide<kWide> wide(f.tensors[t], at);
      for (int w = 0; w < kWide; ++w) values[w][t] = wide.at[w];
    }
    for (int t = 0; t < F::kTensors; ++t) {
      widen<kWide>(f.tensors[t], [&](int w) -> float& { return values[w][t]; });
    }
    for (int w = 0; w < kWide; ++w) {
      result[w] = f(values[w], plane / sizes.channels, channel);
    }
    store_wide<kWide>(f.out, at, result);
  }
}

template <class F>
void map_columns(const ColumnSizes& sizes, const F& f) {
  const Tiling tiling = tiling_of(sizes);
  const bool is_wide = tiling.wide == 4;
  if (sizes.inner == 1) {
    const std::int64_t rows = 8 * (kColumnBlock / tiling.lanes);
    launch(is_wide ? map_tokens<F, 4> : map_tokens<F, 1>,
           {tiling.strips * ceil_div(sizes.outer, rows), kColumnBlock}, sizes, tiling, f);
  } else {
    const std::int64_t warps = tiling.units * sizes.channels;
    launch(is_wide ? map_images<F, 4> : map_images<F, 1>,
           {ceil_div(warps, kColumnBlock / kWarp), kColumnBlock}, sizes, tiling, f);
  }
}

// Calls f(c) for every channel.
template <class F>
__global__ void map_channels(std::int64_t channels, F f) {
  const std::int64_t c = grid_thread();
  if (c < channels) f(c);
}
template <class F>
void each_channel(const ColumnSizes& sizes, const F& f) {
  launch(map_channels<F>, one_thread_each(sizes.channels), sizes.channels, f);
}

}  // namespace keel::cuda

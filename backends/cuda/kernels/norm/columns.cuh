// Shared code of column norms: the rows that a mask keeps, memory for one value a channel, and
// loops over all elements with the data of their channel available.
#pragma once

#include "backends/cuda/kernels/norm/column_sums.cuh"
#include "src/ops/norm/norm.h"

namespace keel::cuda {

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
  // The same memory as a vector of floats.
  Global<float> floats(int i) const {
    return {reinterpret_cast<float*>(vector(i).data()), sizes_.channels};
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

// A kernel of a column norm: run(binding, sizes of x, attributes), with a workspace for `sums`
// kinds of partial sums and for `vectors`.
template <class Attrs>
Prepared prepare_columns(const NodeContext& context, int sums, int vectors,
                         void (*run)(const Binding&, const ColumnSizes&, const Attrs&)) {
  const Attrs attrs = context.attrs<Attrs>();
  const ColumnSizes sizes = column_sizes(context.input(NormInput::kX).shape);
  return kernel_of([=](const Binding& b) { run(b, sizes, attrs); },
                   ColumnScratch::bytes(sizes, sums, vectors));
}

// Sums (kinds, channels) given to a node.
struct GivenSums {
  Global<const double> sums;
  std::int64_t channels;
  __device__ double at(int kind, std::int64_t c) const { return sums[kind * channels + c]; }
};

// `f` computes an element of f.out from those of its tensors, each read once. It has kTensors and
// tensors, a type Channel, f.channel(c), and f(values, step, channel); with f.kept it is told which
// rows are kept. This does it for the elements of all steps, kSteps at a time. load(channels) makes
// the Channels, when the first elements are on their way already.
inline constexpr int kMapSteps = 4;
template <class F, int kWide, int kChannels, class TileSteps, class Load>
__device__ void map_steps(const F& f, TileSteps steps, Load load,
                          typename F::Channel (&channels)[kChannels]) {
  bool is_loaded = false;
  while (steps.go_on()) {
    Batch<F, kWide, kMapSteps> batch(f, steps);
    if (!is_loaded) load(channels);
    is_loaded = true;
    batch.template each<true>(f,
                              [&](const TileStep& step, const float(&values)[kWide][F::kTensors]) {
                                float result[kWide];
                                for (int w = 0; w < kWide; ++w)
                                  result[w] = f(values[w], step, channels[w % kChannels]);
                                if (step.exists) store_wide<kWide>(f.out, step.at, result);
                              });
  }
}

// For tokens: a thread handles only some columns, and a block `rows` of their rows.
template <class F, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    map_tokens(ColumnSizes sizes, Tiling tiling, std::int64_t rows, F f) {
  const TokenPlace place(sizes, tiling, kWide);
  const std::int64_t first = place.strip_row * rows;
  const std::int64_t last = first + rows < sizes.outer ? first + rows : sizes.outer;
  typename F::Channel channels[kWide];
  const auto load = [&](auto& of) {
    for (int w = 0; w < kWide; ++w) of[w] = f.channel(place.column + w);
  };
  map_steps<F, kWide>(f, TokenSteps(sizes, tiling, place, first, last), load, channels);
}

// For images: a warp handles a part of one channel of one image, of which it has `parts`.
template <class F, int kWide>
__global__ void __launch_bounds__(kColumnBlock, 2)
    map_images(ColumnSizes sizes, Tiling tiling, std::int64_t parts, F f) {
  const std::int64_t warp =
      std::int64_t{blockIdx.x} * (kColumnBlock / kWarp) + int(threadIdx.x) / kWarp;
  const Divided plane(warp, parts), channel(plane.quotient, sizes.channels);
  if (channel.quotient >= sizes.outer) return;
  const std::int64_t part = Divided(tiling.groups + parts - 1, parts).quotient;
  const std::int64_t first = plane.rest * part, end = first + part;
  typename F::Channel channels[1];
  const PlaneSteps steps(sizes, tiling, plane.quotient, first,
                         end < tiling.groups ? end : tiling.groups);
  map_steps<F, kWide>(
      f, steps, [&](auto& of) { of[0] = f.channel(channel.rest); }, channels);
}

template <class F>
void map_columns(const ColumnSizes& sizes, const F& f) {
  const Tiling tiling = tiling_of(sizes);
  const bool is_wide = tiling.wide == 4;
  if (sizes.inner == 1) {
    // Threads of large tensors have up to 8 batches, since making the Channels takes time.
    const std::int64_t batch = kMapSteps * tiling.slots();
    const std::int64_t batches = tiling.strips * ceil_div(sizes.outer, batch);
    const std::int64_t rows = batch * std::clamp<std::int64_t>(batches / (2 * kBlocksWanted), 1, 8);
    launch(is_wide ? map_tokens<F, 4> : map_tokens<F, 1>,
           {tiling.strips * ceil_div(sizes.outer, rows), kColumnBlock}, sizes, tiling, rows, f);
  } else {
    const std::int64_t parts = ceil_div(tiling.groups, kMapSteps * kWarp);
    const std::int64_t warps = parts * sizes.outer * sizes.channels;
    launch(is_wide ? map_images<F, 4> : map_images<F, 1>,
           {ceil_div(warps, kColumnBlock / kWarp), kColumnBlock}, sizes, tiling, parts, f);
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

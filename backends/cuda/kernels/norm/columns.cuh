// What the norms over columns share: the rows that a mask keeps, memory for a value of every
// channel, and running over all elements with what is known of their channel at hand.
#pragma once

#include "backends/cuda/kernels/norm/column_sums.cuh"

namespace keel::cuda {

// Which rows take part: all, or those that the mask u8 (outer) does not have as 0.
struct KeptRows {
  Global<const std::uint8_t> mask;
  __device__ bool operator()(std::int64_t row) const { return !mask || mask[row] != 0; }
};
inline KeptRows kept_rows(const TensorRef& mask) { return {global<const std::uint8_t>(mask)}; }

// A node's workspace: partial sums, and vectors with a double for every channel.
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

// `f` has a type Channel, f.channel(c), and f(element, row, channel), called for every element;
// rows are the outer index. Tokens: a thread keeps to one column.
inline constexpr std::int64_t kMapRows = 64, kMapStretch = 2048;

template <class F>
__global__ void __launch_bounds__(kColumnBlock, 2) map_tokens(ColumnSizes sizes, F f) {
  const unsigned strips = unsigned((sizes.channels + kColumnsABlock - 1) / kColumnsABlock);
  const std::int64_t column =
      std::int64_t{blockIdx.x % strips} * kColumnsABlock + int(threadIdx.x) % kColumnsABlock;
  if (column >= sizes.channels) return;
  const typename F::Channel channel = f.channel(column);
  const std::int64_t first = blockIdx.x / strips * kMapRows;
  const std::int64_t last = first + kMapRows < sizes.outer ? first + kMapRows : sizes.outer;
  for (std::int64_t row = first + int(threadIdx.x) / kColumnsABlock; row < last;
       row += kRowsAtOnce) {
    f(row * sizes.channels + column, row, channel);
  }
}

// Images: a block a stretch of one channel of one image.
template <class F>
__global__ void __launch_bounds__(kColumnBlock, 2) map_images(ColumnSizes sizes, F f) {
  const std::int64_t stretches = (sizes.inner + kMapStretch - 1) / kMapStretch;
  const std::int64_t plane = blockIdx.x / stretches;  // of image and channel
  const typename F::Channel channel = f.channel(plane % sizes.channels);
  const std::int64_t first = blockIdx.x % stretches * kMapStretch;
  const std::int64_t last = first + kMapStretch < sizes.inner ? first + kMapStretch : sizes.inner;
  for (std::int64_t e = first + threadIdx.x; e < last; e += kColumnBlock) {
    f(plane * sizes.inner + e, plane / sizes.channels, channel);
  }
}

template <class F>
void map_columns(const ColumnSizes& sizes, const F& f) {
  if (sizes.inner == 1) {
    const std::int64_t strips = ceil_div(sizes.channels, kColumnsABlock);
    launch(map_tokens<F>, {strips * ceil_div(sizes.outer, kMapRows), kColumnBlock}, sizes, f);
  } else {
    const std::int64_t stretches = ceil_div(sizes.inner, kMapStretch);
    launch(map_images<F>, {sizes.outer * sizes.channels * stretches, kColumnBlock}, sizes, f);
  }
}

// f(c) for every channel.
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

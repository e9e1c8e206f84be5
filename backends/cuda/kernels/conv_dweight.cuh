// The gradient of the weights of a convolution with windows of 3x3 elements, without columns:
//     dweight(f, c, u, v) = sum over images and places (i, j) of
//                           dy(f, i, j) x(c, i stride + u - padding, j stride + v - padding)
// A block has 16 filters and 16 channels, and goes through its slice of all strips of an image's
// places, which it holds in shared memory. A thread has four filters and all nine weights of one
// channel, and reads the x of four neighbouring places once. Only the sizes decide the slices,
// whose sums a second kernel adds in order.
#pragma once

#include <algorithm>

#include "backends/cuda/convolution.h"
#include "backends/cuda/device.h"

namespace keel::cuda {

inline constexpr int kDweightChannels = 16, kDweightFilters = 16, kDweightBlock = 256;
// The places of a strip: some rows for each quarter of the block.
template <int kEach, int kWide>
struct Strip {
  static constexpr int kRowsEach = kEach, kRows = 4 * kEach, kCols = kWide;
};
// Blocks that are wanted, two for each multiprocessor of an H100. Part of the order of sums.
inline constexpr std::int64_t kDweightBlocks = 264;

struct DweightSizes {
  int images, channels, height, width, filters, out_height, out_width, padding;
  int row_strips, col_strips, strips;  // of an image, of an image, of all images
  int channel_tiles, tiles;            // of channels, and of channels and filters
  int slices, strips_each;             // of all strips

  DweightSizes(const ConvSizes& s, int strip_rows, int strip_cols)
      : images(int(s.images)),
        channels(int(s.channels)),
        height(int(s.height)),
        width(int(s.width)),
        filters(int(s.filters)),
        out_height(int(s.out_height)),
        out_width(int(s.out_width)),
        padding(int(s.padding)),
        row_strips(int(ceil_div(s.out_height, strip_rows))),
        col_strips(int(ceil_div(s.out_width, strip_cols))),
        strips(images * row_strips * col_strips),
        channel_tiles(int(ceil_div(s.channels, kDweightChannels))),
        tiles(channel_tiles * int(ceil_div(s.filters, kDweightFilters))) {
    const std::int64_t wanted =
        std::clamp<std::int64_t>(ceil_div(kDweightBlocks, tiles), 1, strips);
    strips_each = int(ceil_div(strips, wanted));
    slices = int(ceil_div(strips, strips_each));
  }

  __host__ __device__ std::int64_t weights() const { return std::int64_t{filters} * channels * 9; }
};

// A strip of x and of dy in shared memory, and one thread's part of the sums.
template <int kStride, class S>
class DweightTile {
 public:
  static constexpr int kRows = (S::kRows - 1) * kStride + 3, kCols = (S::kCols - 1) * kStride + 3;
  // Channels lie an odd number of elements apart, and places of dy five times four filters:
  // neighbouring threads seldom meet in a bank.
  static constexpr int kPlane = kRows * kCols + (kRows * kCols + 1) % 2, kPlaceStride = 5;
  static constexpr int kQuarters = 4, kGroup = kDweightBlock / kQuarters;
  // At the end the sums of a quarter pass through the memory of x.
  using Images = Shared<float, std::max(kDweightChannels* kPlane, kGroup * 36)>;
  using Places = Shared<float4, S::kRows * S::kCols * kPlaceStride>;

  __device__ DweightTile(const DweightSizes& s, Images& x, Places& dy)
      : s_(s), x_(x), dy_(dy), thread_(int(threadIdx.x)) {
    const int tile = int(blockIdx.x) % s.tiles;
    first_channel_ = tile % s.channel_tiles * kDweightChannels;
    first_filter_ = tile / s.channel_tiles * kDweightFilters;
  }

  // Reads strip `strip`, with 0 in the padding and for what does not exist.
  template <class T>
  __device__ void read(int strip, Global<const T> x, Global<const T> dy) {
    const int image = strip / (s_.row_strips * s_.col_strips);
    const int in_image = strip - image * s_.row_strips * s_.col_strips;
    row_ = in_image / s_.col_strips * S::kRows;
    col_ = in_image % s_.col_strips * S::kCols;
    read_images(image, x);
    read_places(image, dy);
  }

  // Adds the products of the thread's rows of places.
  __device__ void add() {
    KEEL_UNROLL
    for (int i = 0; i < S::kRowsEach; ++i) add_row(thread_ / kGroup * S::kRowsEach + i);
  }

  // Adds up what the quarters of the block have, in their order, and writes it to `sums`, which are
  // like the weights.
  __device__ void write(Global<float> sums) {
    const int quarter = thread_ / kGroup, place = thread_ % kGroup;
    for (int q = 1; q < kQuarters; ++q) {
      __syncthreads();
      if (quarter == q) each_sum([&](int e, float& sum) { x_[e * kGroup + place] = sum; });
      __syncthreads();
      if (quarter == 0) each_sum([&](int e, float& sum) { sum += x_[e * kGroup + place]; });
    }
    const int c = first_channel_ + channel();
    if (quarter > 0 || c >= s_.channels) return;
    each_sum([&](int e, float& sum) {
      const int f = first_filter_ + quad() * 4 + e / 9;
      if (f < s_.filters) sums[(std::int64_t{f} * s_.channels + c) * 9 + e % 9] = sum;
    });
  }

 private:
  static constexpr int kFour = 4 * kStride, kKept = 3 - kStride;
  static constexpr int kSpan = kFour + kKept;  // columns of x that four places need

  __device__ int channel() const { return thread_ % kDweightChannels; }
  __device__ int quad() const { return thread_ % kGroup / kDweightChannels; }

  template <class T>
  __device__ void read_images(int image, Global<const T> x) {
    const int top = row_ * kStride - s_.padding, left = col_ * kStride - s_.padding;
    for (int e = thread_; e < kDweightChannels * kRows * kCols; e += kDweightBlock) {
      const int c = e / (kRows * kCols), in_plane = e - c * (kRows * kCols);
      const int row = top + in_plane / kCols, col = left + in_plane % kCols;
      const bool exists = first_channel_ + c < s_.channels && row >= 0 && row < s_.height &&
                          col >= 0 && col < s_.width;
      const std::int64_t plane = std::int64_t{image} * s_.channels + first_channel_ + c;
      x_[c * kPlane + in_plane] = exists ? float(x[(plane * s_.height + row) * s_.width + col]) : 0;
    }
  }
  template <class T>
  __device__ void read_places(int image, Global<const T> dy) {
    constexpr int kPlaces = S::kRows * S::kCols;
    for (int e = thread_; e < kDweightFilters * kPlaces; e += kDweightBlock) {
      const int f = e / kPlaces, place = e % kPlaces;
      const int row = row_ + place / S::kCols, col = col_ + place % S::kCols;
      const bool exists =
          first_filter_ + f < s_.filters && row < s_.out_height && col < s_.out_width;
      const std::int64_t plane = std::int64_t{image} * s_.filters + first_filter_ + f;
      (&dy_[place * kPlaceStride + f / 4].x)[f % 4] =
          exists ? float(dy[(plane * s_.out_height + row) * s_.out_width + col]) : 0;
    }
  }

  // Adds the products of one row of places.
  __device__ void add_row(int row) {
    const int rest = s_.out_width - col_, places = rest < S::kCols ? rest : S::kCols;
    if (row_ + row >= s_.out_height) return;
    const int from = channel() * kPlane + row * kStride * kCols;
    float x[3][kSpan];
    KEEL_UNROLL
    for (int u = 0; u < 3; ++u) {
      KEEL_UNROLL
      for (int v = 0; v < kKept; ++v) x[u][kFour + v] = x_[from + u * kCols + v];
    }
    for (int j = 0; j < places; j += 4) {
      KEEL_UNROLL
      for (int u = 0; u < 3; ++u) {
        KEEL_UNROLL
        for (int v = 0; v < kKept; ++v) x[u][v] = x[u][kFour + v];
        KEEL_UNROLL
        for (int v = kKept; v < kSpan; ++v) {
          const int col = j * kStride + v;
          x[u][v] = col < kCols ? x_[from + u * kCols + col] : 0;
        }
      }
      KEEL_UNROLL
      for (int k = 0; k < 4; ++k) {
        if (j + k < places) add_place(x, k, (row * S::kCols + j + k) * kPlaceStride + quad());
      }
    }
  }

  // Adds the products of the k-th of four places, whose dy begins at `at`.
  __device__ void add_place(const float (&x)[3][kSpan], int k, int at) {
    const float4 four = dy_[at];
    const float dy[4] = {four.x, four.y, four.z, four.w};
    KEEL_UNROLL
    for (int f = 0; f < 4; ++f) {
      KEEL_UNROLL
      for (int u = 0; u < 3; ++u) {
        KEEL_UNROLL
        for (int v = 0; v < 3; ++v) {
          sums_[f][u][v] = fmaf(dy[f], x[u][k * kStride + v], sums_[f][u][v]);
        }
      }
    }
  }

  template <class Body>
  __device__ void each_sum(const Body& body) {
    KEEL_UNROLL
    for (int f = 0; f < 4; ++f) {
      KEEL_UNROLL
      for (int w = 0; w < 9; ++w) body(f * 9 + w, sums_[f][w / 3][w % 3]);
    }
  }

  const DweightSizes& s_;
  Images& x_;
  Places& dy_;
  int thread_, first_channel_, first_filter_;
  int row_ = 0, col_ = 0;  // of the strip's first place
  float sums_[4][3][3] = {};
};

// Writes the sums of slice s to weights() numbers of `sums` from s weights() on. The factors may be
// bf16; products and sums are float32.
template <int kStride, class S, class T>
__global__ void __launch_bounds__(kDweightBlock, 2)
    sum_dweight(DweightSizes s, Global<const T> x, Global<const T> dy, Global<float> sums) {
  using Tile = DweightTile<kStride, S>;
  __shared__ typename Tile::Images images;
  __shared__ typename Tile::Places places;
  Tile tile(s, images, places);
  const int slice = int(blockIdx.x) / s.tiles, first = slice * s.strips_each;
  const int end = first + s.strips_each, last = end < s.strips ? end : s.strips;
  for (int strip = first; strip < last; ++strip) {
    __syncthreads();
    tile.read(strip, x, dy);
    __syncthreads();
    tile.add();
  }
  tile.write({sums.data() + slice * s.weights(), s.weights()});
}

}  // namespace keel::cuda

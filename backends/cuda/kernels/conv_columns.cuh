// Convolution's windows as columns of a matrix, and images with one row a channel:
//   columns (channels * rows * cols, images * places)   place = window's number in its image
//   rows    (filters, images * places)
// Both hold the images of one chunk side by side.
#pragma once

#include <algorithm>

#include "backends/cuda/convolution.h"
#include "backends/cuda/kernels/windows.cuh"

namespace keel::cuda {

// Images `first` to first + images - 1, one chunk of all images.
struct Chunk {
  ConvSizes sizes;
  std::int64_t first, images;

  std::int64_t places() const { return sizes.out_height * sizes.out_width; }
  std::int64_t width() const { return images * places(); }  // of both matrices
  // More elements than any tensor has that a kernel over the chunk touches, but for the images
  // before the chunk's own; a stride and a padding may be larger still.
  std::int64_t most_elements() const {
    return std::max({sizes.channels * sizes.rows * sizes.cols * width(), sizes.filters * width(),
                     images * sizes.channels * sizes.height * sizes.width,
                     sizes.stride + sizes.padding});
  }
};

// The sizes of a chunk, as a kernel has them. A kernel gets images from the chunk's first on.
template <class Index>
struct ChunkSizes {
  Index channels, height, width, filters, rows, cols, out_height, out_width, stride, padding;
  Index places, all_places;  // of an image, of the chunk
  Index images;

  explicit ChunkSizes(const Chunk& c)
      : channels(Index(c.sizes.channels)),
        height(Index(c.sizes.height)),
        width(Index(c.sizes.width)),
        filters(Index(c.sizes.filters)),
        rows(Index(c.sizes.rows)),
        cols(Index(c.sizes.cols)),
        out_height(Index(c.sizes.out_height)),
        out_width(Index(c.sizes.out_width)),
        stride(Index(c.sizes.stride)),
        padding(Index(c.sizes.padding)),
        places(Index(c.places())),
        all_places(Index(c.width())),
        images(Index(c.images)) {}
  // The offset in the chunk's images (images, filters, places) of element `at` of a row.
  __device__ Index image_element(Index filter, Index at) const {
    const Index image = at / places;
    return (image * filters + filter) * places + at - image * places;
  }
};

// One thread for each window of each channel: columns[.., at] = its elements, 0 in the padding.
template <class Index, class T>
__global__ void unfold(ChunkSizes<Index> s, Global<const T> x, Global<T> columns) {
  const Index all = s.channels * s.all_places;
  for (Index e = Index(grid_thread()); e < all; e += Index(grid_threads())) {
    const Index channel = e / s.all_places, at = e - channel * s.all_places;
    const Index image = at / s.places, place = at - image * s.places, down = place / s.out_width;
    const Index top = down * s.stride - s.padding;
    const Index left = (place - down * s.out_width) * s.stride - s.padding;
    const Index plane = (image * s.channels + channel) * s.height * s.width;
    Index to = channel * s.rows * s.cols * s.all_places + at;
    for (Index row = top; row < top + s.rows; ++row) {
      for (Index col = left; col < left + s.cols; ++col, to += s.all_places) {
        const bool is_inside = row >= 0 && row < s.height && col >= 0 && col < s.width;
        columns[to] = is_inside ? x[plane + row * s.width + col] : T{};
      }
    }
  }
}

// One thread for each element of dx, which becomes the sum of `columns` over the windows that
// contain the element, in window order.
template <class Index>
__global__ void fold(ChunkSizes<Index> s, Global<const float> columns, Global<float> dx) {
  const Index all = s.images * s.channels * s.height * s.width;
  for (Index e = Index(grid_thread()); e < all; e += Index(grid_threads())) {
    const Index line = e / s.width, plane = line / s.height, image = plane / s.channels;
    const Index col = e - line * s.width + s.padding, row = line - plane * s.height + s.padding;
    const Index channel = plane - image * s.channels;
    const auto down = covering(row, s.rows, s.stride, s.out_height);
    const auto across = covering(col, s.cols, s.stride, s.out_width);
    float sum = 0;
    for (Index i = down.first; i < down.end; ++i) {
      for (Index j = across.first; j < across.end; ++j) {
        const Index u = row - i * s.stride, v = col - j * s.stride;
        const Index place = image * s.places + i * s.out_width + j;
        sum += columns[((channel * s.rows + u) * s.cols + v) * s.all_places + place];
      }
    }
    dx[e] = sum;
  }
}

template <class Index, class T>
__global__ void gather_rows(ChunkSizes<Index> s, Global<const T> images, Global<T> rows) {
  for (Index e = Index(grid_thread()); e < rows.size(); e += Index(grid_threads())) {
    const Index filter = e / s.all_places;
    rows[e] = images[s.image_element(filter, e - filter * s.all_places)];
  }
}

// images = rows + bias, then ReLU if wanted; NaN is kept.
template <class Index>
__global__ void scatter_rows(ChunkSizes<Index> s, Global<const float> rows,
                             Global<const float> bias, Global<float> images, bool relu) {
  for (Index e = Index(grid_thread()); e < rows.size(); e += Index(grid_threads())) {
    const Index filter = e / s.all_places;
    const float value = rows[e] + bias.get(filter, 0);
    images[s.image_element(filter, e - filter * s.all_places)] = relu && value <= 0 ? 0 : value;
  }
}

}  // namespace keel::cuda

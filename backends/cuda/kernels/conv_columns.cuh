// Convolution's windows as columns of a matrix, and images with one row a channel:
//   columns (channels * rows * cols, images * places)   place = window's number in its image
//   rows    (filters, images * places)
// Both hold the images of one chunk side by side.
#pragma once

#include "backends/cuda/convolution.h"
#include "backends/cuda/kernels/windows.cuh"

namespace keel::cuda {

// Images `first` to first + images - 1, one chunk of all images.
struct Chunk {
  ConvSizes sizes;
  std::int64_t first, images;

  __host__ __device__ std::int64_t places() const { return sizes.out_height * sizes.out_width; }
  __host__ __device__ std::int64_t width() const { return images * places(); }  // of both matrices
  // The offset in the images (n, filters, places) of element e of rows.
  __device__ std::int64_t image_element(std::int64_t e) const {
    const std::int64_t filter = e / width(), at = e % width();
    return ((first + at / places()) * sizes.filters + filter) * places() + at % places();
  }
};

// One thread for each window of each channel: columns[.., at] = its elements, 0 in the padding.
static __global__ void unfold(Chunk chunk, Global<const float> x, Global<float> columns) {
  const ConvSizes& s = chunk.sizes;
  const std::int64_t width = chunk.width(), places = chunk.places();
  for (std::int64_t e = grid_thread(); e < s.channels * width; e += grid_threads()) {
    const std::int64_t channel = e / width, at = e % width, place = at % places;
    const std::int64_t image = chunk.first + at / places;
    const std::int64_t top = place / s.out_width * s.stride - s.padding;
    const std::int64_t left = place % s.out_width * s.stride - s.padding;
    const std::int64_t plane = (image * s.channels + channel) * s.height * s.width;
    std::int64_t to = channel * s.rows * s.cols * width + at;
    for (std::int64_t row = top; row < top + s.rows; ++row) {
      for (std::int64_t col = left; col < left + s.cols; ++col, to += width) {
        const bool is_inside = row >= 0 && row < s.height && col >= 0 && col < s.width;
        columns[to] = is_inside ? x[plane + row * s.width + col] : 0;
      }
    }
  }
}

// One thread for each element of dx, which becomes the sum of `columns` over the windows that
// contain the element, in window order.
static __global__ void fold(Chunk chunk, Global<const float> columns, Global<float> dx) {
  const ConvSizes& s = chunk.sizes;
  const std::int64_t image_size = s.channels * s.height * s.width;
  for (std::int64_t e = grid_thread(); e < chunk.images * image_size; e += grid_threads()) {
    const std::int64_t col = e % s.width + s.padding, row = e / s.width % s.height + s.padding;
    const std::int64_t channel = e / s.width / s.height % s.channels;
    const Covering down = covering(row, s.rows, s.stride, s.out_height);
    const Covering across = covering(col, s.cols, s.stride, s.out_width);
    float sum = 0;
    for (std::int64_t i = down.first; i < down.end; ++i) {
      for (std::int64_t j = across.first; j < across.end; ++j) {
        const std::int64_t u = row - i * s.stride, v = col - j * s.stride;
        const std::int64_t place = e / image_size * chunk.places() + i * s.out_width + j;
        sum += columns[((channel * s.rows + u) * s.cols + v) * chunk.width() + place];
      }
    }
    dx[chunk.first * image_size + e] = sum;
  }
}

static __global__ void gather_rows(Chunk chunk, Global<const float> images, Global<float> rows) {
  for (std::int64_t e = grid_thread(); e < rows.size(); e += grid_threads()) {
    rows[e] = images[chunk.image_element(e)];
  }
}

// images = rows + bias, then ReLU if wanted; NaN is kept.
static __global__ void scatter_rows(Chunk chunk, Global<const float> rows, Global<const float> bias,
                                    Global<float> images, bool relu) {
  for (std::int64_t e = grid_thread(); e < rows.size(); e += grid_threads()) {
    const float value = rows[e] + bias.get(e / chunk.width(), 0);
    images[chunk.image_element(e)] = relu && value <= 0 ? 0 : value;
  }
}

}  // namespace keel::cuda

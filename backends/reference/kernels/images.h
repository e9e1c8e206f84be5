// Images (n, c, h, w) in either memory order, for the kernels of convolution and pooling: their
// sizes, and the offset of an element.
#pragma once

#include "src/ops/image_order.h"

namespace keel::reference {

struct Images {
  std::int64_t images, channels, height, width;
  std::int64_t image_stride, channel_stride, row_stride, col_stride;

  std::int64_t offset(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t col) const {
    return n * image_stride + c * channel_stride + row * row_stride + col * col_stride;
  }
};

inline Images images_of(const Shape& stored, bool channels_last) {
  const Shape sizes = image_sizes(stored, channels_last);
  const auto s = stored.strides();
  if (channels_last) return {sizes[0], sizes[1], sizes[2], sizes[3], s[0], s[3], s[1], s[2]};
  return {sizes[0], sizes[1], sizes[2], sizes[3], s[0], s[1], s[2], s[3]};
}

}  // namespace keel::reference

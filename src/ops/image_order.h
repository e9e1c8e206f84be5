// The two memory orders of images (n, c, h, w): as named, or channels
// last, that is (n, h, w, c).
#pragma once

#include "src/core/shape.h"

namespace keel {

// The sizes n, c, h, w of images whose stored shape is `stored`.
inline Shape image_sizes(const Shape& stored, bool channels_last) {
  return channels_last ? Shape{stored[0], stored[3], stored[1], stored[2]} : stored;
}

// The inverse: the stored shape of images with sizes n, c, h, w.
inline Shape stored_shape(const Shape& sizes, bool channels_last) {
  return channels_last ? Shape{sizes[0], sizes[2], sizes[3], sizes[1]} : sizes;
}

}  // namespace keel

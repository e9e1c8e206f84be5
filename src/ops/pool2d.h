// 2-D pooling over square windows without padding, NCHW.
//
//   max_pool2d  y = largest x of the window; index u8 = its place in the window, row by row, the
//               first on ties.             dx = dy at that place, added where windows overlap
//   avg_pool2d  y = mean of the window.    dx = dy / window^2, added where windows overlap
//   x (n, c, h, w)   y (n, c, (h - window) / stride + 1, likewise)
// `channels_last` (images are stored as (n, h, w, c)) is set by a pass only, after gradients are
// built.
// errors: rank; window larger than the image or above 15 (its places must fit u8); stride < 1.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// The outputs of max_pool2d and the inputs of both backwards have these places; only max_pool2d has
// an index.
struct MaxPoolOutput {
  enum Place : int { kY, kIndex };
};
struct PoolBackwardInput {
  enum Place : int { kDy, kIndex };
};

struct PoolAttrs {
  std::int64_t window = 2, stride = 2;
  bool channels_last = false;
  static constexpr auto fields() {
    return std::tuple{field("window", &PoolAttrs::window), field("stride", &PoolAttrs::stride),
                      field("channels_last", &PoolAttrs::channels_last)};
  }
};

struct PoolBackwardAttrs {
  std::int64_t window = 2, stride = 2;
  Shape shape;  // of x, as stored
  bool channels_last = false;
  static constexpr auto fields() {
    return std::tuple{field("window", &PoolBackwardAttrs::window),
                      field("stride", &PoolBackwardAttrs::stride),
                      field("shape", &PoolBackwardAttrs::shape),
                      field("channels_last", &PoolBackwardAttrs::channels_last)};
  }
};

extern const OpInfo kMaxPool2d, kAvgPool2d;
extern const OpInfo kMaxPool2dBackward;  // (dy, index) -> dx
extern const OpInfo kAvgPool2dBackward;  // (dy) -> dx

namespace ops {

Value max_pool2d(Graph& g, Value x, std::int64_t window, std::int64_t stride);
Value avg_pool2d(Graph& g, Value x, std::int64_t window, std::int64_t stride);

}  // namespace ops
}  // namespace keel

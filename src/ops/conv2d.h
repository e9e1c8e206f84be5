// 2-D convolution (cross-correlation), zero padding, NCHW.
//
//   y[n,o,i,j] = bias[o]
//                + sum_{c,u,v} x[n, c, i*stride + u - padding, j*stride + v - padding] w[o,c,u,v]
//   x (n, c, h, w)   weight (o, c, kh, kw)   bias (o) or absent
//   y (n, o, (h + 2 padding - kh) / stride + 1, likewise)
// x and weight have one type. If it is bf16, bias and y are float32, as sums are; the backwards
// take dy cast to bf16 and give float32.
// backward (Exact): conv2d_backward_input (dy, weight) -> dx;
//                   conv2d_backward_weight (x, dy) -> dweight;  dbias = dy added up over n, i, j.
// `activation` and `channels_last` (x, y, dx and dy are stored as (n, h, w, c)) are set by passes
// only, after gradients are built.
// errors: ranks; channels that differ; a window larger than the padded image; stride < 1.
#pragma once

#include "src/graph/graph.h"
#include "src/ops/activation.h"

namespace keel {

// Places of inputs. Each backward has dy in the place of the input that it differentiates by.
struct ConvInput {
  enum Place : int { kX, kWeight, kBias };
};
struct ConvDxInput {
  enum Place : int { kDy, kWeight };
};
struct ConvDweightInput {
  enum Place : int { kX, kDy };
};

struct ConvAttrs {
  std::int64_t stride = 1, padding = 0;
  Activation activation = Activation::kNone;
  bool channels_last = false;
  static constexpr auto fields() {
    return std::tuple{field("stride", &ConvAttrs::stride), field("padding", &ConvAttrs::padding),
                      field("activation", &ConvAttrs::activation),
                      field("channels_last", &ConvAttrs::channels_last)};
  }
};

// The backward nodes carry the shape they must produce, which dy alone does not determine.
struct ConvBackwardAttrs {
  std::int64_t stride = 1, padding = 0;
  Shape shape;  // of x, as stored, or of weight
  bool channels_last = false;
  static constexpr auto fields() {
    return std::tuple{field("stride", &ConvBackwardAttrs::stride),
                      field("padding", &ConvBackwardAttrs::padding),
                      field("shape", &ConvBackwardAttrs::shape),
                      field("channels_last", &ConvBackwardAttrs::channels_last)};
  }
};

extern const OpInfo kConv2d, kConv2dBackwardInput, kConv2dBackwardWeight;

namespace ops {

struct ConvOptions {
  Value bias = {};
  std::int64_t stride = 1, padding = 0;
};
Value conv2d(Graph& g, Value x, Value weight, const ConvOptions& options = {});

}  // namespace ops
}  // namespace keel

// 2-D convolution. Forward and both backwards are sums of products over the same triples
// (x element, weight element, y element); they differ in which of the three is added to.
#include "src/ops/conv2d.h"

#include <span>

#include "backends/reference/kernels/images.h"
#include "backends/reference/kernels/kernels.h"
#include "src/ops/elementwise.h"

namespace keel::reference {
namespace {

struct ConvSizes {
  Images x, y;
  std::int64_t rows, cols, stride, padding;  // of the weight (y.channels, x.channels, rows, cols)
};

template <class Attrs>
ConvSizes conv_sizes(const Shape& x, const Shape& weight, const Shape& y, const Attrs& attrs) {
  return {images_of(x, attrs.channels_last),
          images_of(y, attrs.channels_last),
          weight[2],
          weight[3],
          attrs.stride,
          attrs.padding};
}

// Calls visit(x, weight, y) with the offsets of every triple of image n, filter o and channel c,
// leaving out places of x in the padding.
template <class Visit>
void visit_channel(const ConvSizes& s, std::int64_t n, std::int64_t o, std::int64_t c,
                   Visit visit) {
  for (std::int64_t u = 0; u < s.rows; ++u) {
    for (std::int64_t v = 0; v < s.cols; ++v) {
      const std::int64_t weight = ((o * s.x.channels + c) * s.rows + u) * s.cols + v;
      for (std::int64_t i = 0; i < s.y.height; ++i) {
        const std::int64_t row = i * s.stride + u - s.padding;
        if (row < 0 || row >= s.x.height) continue;
        for (std::int64_t j = 0; j < s.y.width; ++j) {
          const std::int64_t col = j * s.stride + v - s.padding;
          if (col < 0 || col >= s.x.width) continue;
          visit(s.x.offset(n, c, row, col), weight, s.y.offset(n, o, i, j));
        }
      }
    }
  }
}

template <class Visit>
void visit_triples(const ConvSizes& s, Visit visit) {
  for (std::int64_t n = 0; n < s.x.images; ++n) {
    for (std::int64_t o = 0; o < s.y.channels; ++o) {
      for (std::int64_t c = 0; c < s.x.channels; ++c) visit_channel(s, n, o, c, visit);
    }
  }
}

// y[n, o, i, j] = bias[o], or 0 without one.
void set_bias(const TensorRef& y, const TensorRef& bias, const Images& s) {
  vector(y).setZero();
  if (!bias) return;
  const std::int64_t places = s.height * s.width;
  for (std::int64_t k = 0; k < s.images * s.channels * places; ++k) {
    const std::int64_t place = k % places, o = k / places % s.channels, n = k / places / s.channels;
    y.as<double>()[s.offset(n, o, place / s.width, place % s.width)] = bias.as<double>()[o];
  }
}

void forward(const Binding& b, const ConvSizes& s, bool relu) {
  using In = ConvInput;
  const double *x = b.inputs[In::kX].as<double>(), *weight = b.inputs[In::kWeight].as<double>();
  double* y = b.outputs[0].as<double>();
  set_bias(b.outputs[0], b.inputs[In::kBias], s.y);
  visit_triples(s, [=](auto xi, auto wi, auto yi) { y[yi] += x[xi] * weight[wi]; });
  if (!relu) return;
  for (double& value : std::span(y, std::size_t(b.outputs[0].elements()))) {
    value = evaluate(EwCode::kRelu, {value}, {});
  }
}

void backward_input(const Binding& b, const ConvSizes& s) {
  using In = ConvDxInput;
  const double *dy = b.inputs[In::kDy].as<double>(), *weight = b.inputs[In::kWeight].as<double>();
  double* dx = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  visit_triples(s, [=](auto xi, auto wi, auto yi) { dx[xi] += dy[yi] * weight[wi]; });
}

void backward_weight(const Binding& b, const ConvSizes& s) {
  using In = ConvDweightInput;
  const double *x = b.inputs[In::kX].as<double>(), *dy = b.inputs[In::kDy].as<double>();
  double* dweight = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  visit_triples(s, [=](auto xi, auto wi, auto yi) { dweight[wi] += x[xi] * dy[yi]; });
}

}  // namespace

Prepared prepare_conv2d(const NodeContext& context) {
  using In = ConvInput;
  const auto& attrs = context.attrs<ConvAttrs>();
  const ConvSizes sizes = conv_sizes(context.input(In::kX).shape, context.input(In::kWeight).shape,
                                     context.output().shape, attrs);
  const bool relu = attrs.activation == Activation::kRelu;
  return kernel_of([=](const Binding& b) { forward(b, sizes, relu); });
}

Prepared prepare_conv2d_backward_input(const NodeContext& context) {
  using In = ConvDxInput;
  const ConvSizes sizes =
      conv_sizes(context.output().shape, context.input(In::kWeight).shape,
                 context.input(In::kDy).shape, context.attrs<ConvBackwardAttrs>());
  return kernel_of([=](const Binding& b) { backward_input(b, sizes); });
}

Prepared prepare_conv2d_backward_weight(const NodeContext& context) {
  using In = ConvDweightInput;
  const ConvSizes sizes =
      conv_sizes(context.input(In::kX).shape, context.output().shape, context.input(In::kDy).shape,
                 context.attrs<ConvBackwardAttrs>());
  return kernel_of([=](const Binding& b) { backward_weight(b, sizes); });
}

}  // namespace keel::reference

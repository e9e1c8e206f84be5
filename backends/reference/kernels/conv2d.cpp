// 2-D convolution. Forward and both backwards are sums of products over the same triples
// (x element, weight element, y element); they differ in which of the three is added to.
#include "src/ops/conv2d.h"

#include "backends/reference/kernels/kernels.h"
#include "src/ops/elementwise.h"

namespace keel::reference {
namespace {

// x (images, channels, height, width), weight (filters, channels, rows, cols),
// y (images, filters, out_height, out_width)
struct ConvSizes {
  std::int64_t images, channels, height, width;
  std::int64_t filters, rows, cols;
  std::int64_t out_height, out_width;
  std::int64_t stride, padding;
};

template <class Attrs>
ConvSizes conv_sizes(const Shape& x, const Shape& weight, const Shape& y, const Attrs& attrs) {
  return {x[0],      x[1], x[2], x[3],         y[1],         weight[2],
          weight[3], y[2], y[3], attrs.stride, attrs.padding};
}

// Calls visit(x, weight, y) with the offsets of every triple of (image n, filter o, channel c),
// leaving out places of x in the padding.
template <class Visit>
void visit_channel(const ConvSizes& s, std::int64_t n, std::int64_t o, std::int64_t c,
                   Visit visit) {
  const std::int64_t x = (n * s.channels + c) * s.height * s.width;
  const std::int64_t weight = (o * s.channels + c) * s.rows * s.cols;
  const std::int64_t y = (n * s.filters + o) * s.out_height * s.out_width;
  for (std::int64_t u = 0; u < s.rows; ++u) {
    for (std::int64_t v = 0; v < s.cols; ++v) {
      for (std::int64_t i = 0; i < s.out_height; ++i) {
        const std::int64_t row = i * s.stride + u - s.padding;
        if (row < 0 || row >= s.height) continue;
        for (std::int64_t j = 0; j < s.out_width; ++j) {
          const std::int64_t col = j * s.stride + v - s.padding;
          if (col < 0 || col >= s.width) continue;
          visit(x + row * s.width + col, weight + u * s.cols + v, y + i * s.out_width + j);
        }
      }
    }
  }
}

template <class Visit>
void visit_triples(const ConvSizes& s, Visit visit) {
  for (std::int64_t n = 0; n < s.images; ++n) {
    for (std::int64_t o = 0; o < s.filters; ++o) {
      for (std::int64_t c = 0; c < s.channels; ++c) visit_channel(s, n, o, c, visit);
    }
  }
}

void forward(const Binding& b, const ConvSizes& s, bool relu) {
  const double *x = b.inputs[0].as<double>(), *weight = b.inputs[1].as<double>();
  double* y = b.outputs[0].as<double>();
  Matrix planes = matrix(b.outputs[0], s.images * s.filters, s.out_height * s.out_width);
  for (Eigen::Index plane = 0; plane < planes.rows(); ++plane) {
    planes.row(plane).setConstant(b.inputs[2] ? vector(b.inputs[2])[plane % s.filters] : 0);
  }
  visit_triples(s, [=](auto xi, auto wi, auto yi) { y[yi] += x[xi] * weight[wi]; });
  if (relu) {
    planes = planes.unaryExpr([](double v) { return evaluate(EwCode::kRelu, {v}, {}); });
  }
}

void backward_input(const Binding& b, const ConvSizes& s) {
  const double *dy = b.inputs[0].as<double>(), *weight = b.inputs[1].as<double>();
  double* dx = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  visit_triples(s, [=](auto xi, auto wi, auto yi) { dx[xi] += dy[yi] * weight[wi]; });
}

void backward_weight(const Binding& b, const ConvSizes& s) {
  const double *x = b.inputs[0].as<double>(), *dy = b.inputs[1].as<double>();
  double* dweight = b.outputs[0].as<double>();
  vector(b.outputs[0]).setZero();
  visit_triples(s, [=](auto xi, auto wi, auto yi) { dweight[wi] += x[xi] * dy[yi]; });
}

}  // namespace

Prepared prepare_conv2d(const NodeContext& context) {
  const auto& attrs = context.attrs<ConvAttrs>();
  const ConvSizes sizes =
      conv_sizes(context.input(0).shape, context.input(1).shape, context.output().shape, attrs);
  const bool relu = attrs.activation == "relu";
  return kernel_of([=](const Binding& b) { forward(b, sizes, relu); });
}

Prepared prepare_conv2d_backward_input(const NodeContext& context) {
  const ConvSizes sizes = conv_sizes(context.output().shape, context.input(1).shape,
                                     context.input(0).shape, context.attrs<ConvBackwardAttrs>());
  return kernel_of([=](const Binding& b) { backward_input(b, sizes); });
}

Prepared prepare_conv2d_backward_weight(const NodeContext& context) {
  const ConvSizes sizes = conv_sizes(context.input(0).shape, context.output().shape,
                                     context.input(1).shape, context.attrs<ConvBackwardAttrs>());
  return kernel_of([=](const Binding& b) { backward_weight(b, sizes); });
}

}  // namespace keel::reference

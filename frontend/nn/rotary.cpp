#include "frontend/nn/rotary.h"

#include <cmath>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"

namespace keel::nn {

Rotary::Rotary(Net& net, std::int64_t length, std::int64_t width, const RotaryOptions& options)
    : net_(&net), length_(length), width_(width) {
  check(width >= 2 && width % 2 == 0, ErrorKind::kUsage,
        "[rotary] width: expected heads of an even width, got {}", width);
  check(options.base > 0, ErrorKind::kUsage, "[rotary] base: expected a number > 0, got {}",
        options.base);
  const std::int64_t half = width / 2;
  Tensor cosines(DType::kF64, {length, 1, width}), sines(DType::kF64, {length, 1, width});
  const auto cos = cosines.as<double>(), sin = sines.as<double>();
  for (std::int64_t row = 0; row < length; ++row) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double rate = std::pow(options.base, -double(i) / double(half));
      const double angle = double(options.first + row) * rate;
      const auto at = std::size_t(row * width + i), paired = at + std::size_t(half);
      cos[at] = cos[paired] = std::cos(angle);
      sin[at] = -std::sin(angle);
      sin[paired] = std::sin(angle);
    }
  }
  cosines_ = net.graph.constant(cosines.to(net.dtype));
  sines_ = net.graph.constant(sines.to(net.dtype));
}

Value Rotary::operator()(Value x) const {
  Graph& g = net_->graph;
  const Shape shape = g.shape(x);
  const bool fits = shape.rank() == 3 && shape[1] == length_ && shape[2] % width_ == 0;
  check(fits, ErrorKind::kUsage, "[rotary] x: expected (batch, {}, a multiple of {}), got {}",
        length_, width_, shape.text());
  const std::int64_t half = width_ / 2;
  const Value z = ops::reshape(g, x, {shape[0], length_, shape[2] / width_, width_});
  const Value exchanged =
      ops::concat(g, {ops::slice_axis(g, z, 3, half, half), ops::slice_axis(g, z, 3, 0, half)}, 3);
  const Value y = ops::add(g, ops::mul(g, z, cosines_), ops::mul(g, exchanged, sines_));
  return ops::reshape(g, y, shape);
}

}  // namespace keel::nn

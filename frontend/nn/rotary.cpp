#include "frontend/nn/rotary.h"

#include <cmath>

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"

namespace keel::nn {
namespace {

// Constants (length, 1, width) by which z and its exchanged halves are multiplied:
// [cos a, cos a] and [-sin a, sin a].
struct RotationTables {
  Value cosines, sines;
};

RotationTables rotation_tables(Net& net, std::int64_t length, std::int64_t width,
                               const RotaryOptions& options) {
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
  return {net.graph.constant(cosines.to(net.dtype)), net.graph.constant(sines.to(net.dtype))};
}

}  // namespace

Value rotary(Net& net, Value x, const RotaryOptions& options) {
  Graph& g = net.graph;
  const Shape shape = g.shape(x);
  check(shape.rank() == 3, ErrorKind::kUsage,
        "[rotary] x: expected (batch, length, features), got {}", shape.text());
  check(options.heads >= 1 && shape[2] % (2 * options.heads) == 0, ErrorKind::kUsage,
        "[rotary] heads: expected a divisor of the {} features, with an even width, got {}",
        shape[2], options.heads);
  check(options.base > 0, ErrorKind::kUsage, "[rotary] base: expected a number > 0, got {}",
        options.base);
  const std::int64_t width = shape[2] / options.heads, half = width / 2;
  const RotationTables tables = rotation_tables(net, shape[1], width, options);
  const Value z = ops::reshape(g, x, {shape[0], shape[1], options.heads, width});
  const Value exchanged =
      ops::concat(g, {ops::slice_axis(g, z, 3, half, half), ops::slice_axis(g, z, 3, 0, half)}, 3);
  const Value y = ops::add(g, ops::mul(g, z, tables.cosines), ops::mul(g, exchanged, tables.sines));
  return ops::reshape(g, y, shape);
}

}  // namespace keel::nn

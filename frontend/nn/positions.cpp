#include "frontend/nn/positions.h"

#include <cmath>

#include "frontend/nn/init.h"
#include "src/ops/layout.h"

namespace keel::nn {

Value sinusoidal_positions(Net& net, std::int64_t length, std::int64_t width, std::int64_t first) {
  check(width >= 4 && width % 2 == 0, ErrorKind::kUsage,
        "sinusoidal positions: expected an even width >= 4, got {}", width);
  const std::int64_t half = width / 2;
  Tensor table(DType::kF64, {length, width});
  const auto values = table.as<double>();
  for (std::int64_t p = 0; p < length; ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double rate = std::exp(-double(i) * std::log(10000.0) / double(half - 1));
      const double angle = double(p + first) * rate;
      values[std::size_t(p * width + i)] = std::sin(angle);
      values[std::size_t(p * width + half + i)] = std::cos(angle);
    }
  }
  return net.graph.constant(table.to(net.dtype));
}

Value learned_positions(Net& net, const std::string& name, std::int64_t length, std::int64_t width,
                        const LearnedPositions& options) {
  check(length <= options.longest, ErrorKind::kUsage, "{}: expected at most {} positions, got {}",
        name, options.longest, length);
  const Value table = net.parameter(name, {options.longest, width}, normal(options.deviation));
  return ops::slice_axis(net.graph, table, 0, 0, length);
}

}  // namespace keel::nn

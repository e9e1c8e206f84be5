#include "frontend/nn/multilinear.h"

#include <cmath>

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/multilinear_attention.h"
#include "src/ops/reduce.h"

namespace keel::nn {
namespace {

// Row j has sin(t w_i), then cos(t w_i), of t = positions - 1 - j, with w_i = 10000^(-2 i / width)
// (Dai et al. 2019).
Tensor distances_to_last(std::int64_t positions, std::int64_t width) {
  check(width % 2 == 0, ErrorKind::kUsage, "width: expected an even number, got {}", width);
  Tensor table(DType::kF64, {positions, width});
  double* const values = table.as<double>().data();
  for (std::int64_t j = 0; j < positions; ++j) {
    for (std::int64_t i = 0; i < width / 2; ++i) {
      const double angle =
          double(positions - 1 - j) * std::pow(1e4, -2.0 * double(i) / double(width));
      values[j * width + i] = std::sin(angle);
      values[j * width + width / 2 + i] = std::cos(angle);
    }
  }
  return table;
}

// The rows of `out` for the pairs of the first n positions.
Value of_first_pairs(Graph& g, Value out, std::int64_t positions, std::int64_t n) {
  if (n == positions) return out;
  const std::int64_t width = g.shape(out)[1];
  const Value cube = ops::reshape(g, out, {positions, positions, width});
  return ops::reshape(g, ops::slice(g, cube, {0, 0, 0}, {n, n, width}), {n * n, width});
}

}  // namespace

MultilinearBiases::MultilinearBiases(const Net& net, const std::string& name,
                                     const MultilinearOptions& options) {
  const auto scope = net.graph.scope(name);
  content = net.parameter("content", {options.rank}, options.init(1, options.rank));
  position = net.parameter("position", {options.rank}, options.init(1, options.rank));
}

Value multilinear_attention(Net& net, const std::string& name, Value x,
                            const MultilinearOptions& options, const MultilinearBiases& biases) {
  Graph& g = net.graph;
  const auto scope = g.scope(name);
  const std::int64_t n = g.shape(x)[1], width = g.shape(x).back(), most = options.positions;
  check(n <= most, ErrorKind::kUsage, "{}: expected at most {} positions, got {}", name, most, n);
  const LayerOptions projection{.bias = false, .weight_init = options.init};
  const auto project = [&](const char* to, Value from) {
    return linear(net, to, from, options.rank, projection);
  };
  const Value q = project("q", x);
  const Value sines = g.constant(distances_to_last(most, width).to(net.dtype));
  const Value core = ops::mean(g,
                               net.parameter("core", {options.cores, options.rank},
                                             constant(1 / double(options.rank)), {.decays = false}),
                               {0});
  const Value out = net.parameter("out", {most * most, width}, options.init(most * most, width));
  return ops::multilinear_attention(g,
                                    {.a = ops::mul(g, ops::add(g, q, biases.content), core),
                                     .c = ops::mul(g, ops::add(g, q, biases.position), core),
                                     .k = project("k", x),
                                     .p = ops::slice_axis(g, project("positions", sines), 0, 0, n),
                                     .v = project("v", x),
                                     .out = of_first_pairs(g, out, most, n)},
                                    {.causal = options.causal});
}

}  // namespace keel::nn

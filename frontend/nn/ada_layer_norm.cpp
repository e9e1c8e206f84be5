#include "frontend/nn/ada_layer_norm.h"

#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/norm/layer_norm.h"

namespace keel::nn {
namespace {

constexpr double kEps = 1e-6;

struct Modulation {
  Value shift, scale, gate;  // (batch, 1, ..., 1, width)
};

Modulation modulation(Net& net, Value c, const Shape& x) {
  Graph& g = net.graph;
  const auto none = [](std::int64_t) { return zeros(); };
  const Value silu = ops::mul(g, c, ops::sigmoid(g, c));
  const std::int64_t width = x.back();
  const Value all =
      linear(net, "modulation", silu, 3 * width, {.weight_init = none, .bias_init = none});
  std::vector<std::int64_t> sizes(std::size_t(x.rank()), 1);
  sizes.front() = x[0];
  sizes.back() = width;
  const auto part = [&](std::int64_t i) {
    return ops::reshape(g, ops::slice_axis(g, all, 1, i * width, width), Shape(sizes));
  };
  return {part(0), part(1), part(2)};
}

}  // namespace

Value ada_layer_norm_zero(Net& net, const std::string& name, Value x, Value c,
                          const std::function<Value(Value)>& branch) {
  Graph& g = net.graph;
  const Shape sizes = g.shape(x), of_c = g.shape(c);
  check(sizes.rank() >= 3, ErrorKind::kUsage,
        "[ada_layer_norm_zero] x: expected (batch, ..., width), got {}", sizes.text());
  check(of_c.rank() == 2 && of_c[0] == sizes[0], ErrorKind::kUsage,
        "[ada_layer_norm_zero] c: expected ({}, conditions), got {}", sizes[0], of_c.text());
  const auto scope = g.scope(name);
  const Modulation by = modulation(net, c, sizes);
  const Value normed = ops::layer_norm(g, x, {}, {.eps = kEps});
  const Value factor = ops::scale(g, by.scale, 1, 1);
  const Value h = branch(ops::add(g, ops::mul(g, normed, factor), by.shift));
  return ops::add(g, x, ops::mul(g, h, by.gate));
}

}  // namespace keel::nn

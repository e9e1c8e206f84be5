// Norms that act on a layer's weight: weight normalization and centralization.
#include "frontend/nn/weight.h"

#include <cmath>

#include "frontend/nn/layers.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::nn {
namespace {

using Names = std::vector<std::string>;

Layer linear_with(const std::string& norm) {
  return [=](Net& net, Value x) { return linear(net, "fc", x, 3, {.norm = Norm::parse(norm)}); };
}

Layer conv2d_with(const std::string& norm) {
  return [=](Net& net, Value x) {
    return conv2d(net, "conv", x, {.channels = 3, .window = 2}, {.norm = Norm::parse(norm)});
  };
}

TEST_CASE("weightnorm: y = x W + b with columns of W of length gain") {
  LayerRun run(linear_with("weightnorm"), {4, 5});
  CHECK(run.parameters == Names{"fc/weight", "fc/norm/gain", "fc/bias"});
  run.variables.write("fc/norm/gain", test::f64({3}, {1, -2, 3}));
  run.variables.write("fc/bias", test::f64({3}, {0.5, 0, -1}));
  run.program->run();
  const Tensor x = test::random_normal({4, 5}, 5, 2, 3), v = run.read("fc/weight"),
               gain = run.read("fc/norm/gain"), bias = run.read("fc/bias"),
               y = run.program->fetch("y", true);
  for (std::int64_t out = 0; out < 3; ++out) {
    double squares = 0;
    for (std::int64_t in = 0; in < 5; ++in) squares += v.at(in * 3 + out) * v.at(in * 3 + out);
    for (std::int64_t row = 0; row < 4; ++row) {
      double sum = 0;
      for (std::int64_t in = 0; in < 5; ++in) sum += x.at(row * 5 + in) * v.at(in * 3 + out);
      const double expected = gain.at(out) * sum / std::sqrt(squares) + bias.at(out);
      CHECK(y.at(row * 3 + out) == doctest::Approx(expected).epsilon(1e-12));
    }
  }
}

TEST_CASE("weightnorm: the weight is drawn from N(0, 0.05^2), whatever the layer's own draw is") {
  const auto deviation = [](const std::string& norm) {
    LayerRun run(
        [&](Net& net, Value x) {
          return linear(net, "fc", x, 200,
                        {.weight_init = [](auto) { return ones(); }, .norm = Norm::parse(norm)});
        },
        {1, 100});
    double squares = 0;
    const Tensor v = run.read("fc/weight");
    for (std::int64_t e = 0; e < v.elements(); ++e) squares += v.at(e) * v.at(e);
    return std::sqrt(squares / double(v.elements()));
  };
  CHECK(deviation("weightnorm") == doctest::Approx(0.05).epsilon(0.02));
  CHECK(deviation("weightnorm{deviation=2}") == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("weight norms: gradients of the layer against central differences") {
  // A probe leaves the state of mabn at its first step, where its backward is the derivative.
  const std::pair<Layer, Shape> rows[] = {
      {linear_with("weightnorm"), {6, 5}},
      {conv2d_with("weightnorm"), {2, 3, 4, 4}},
      {linear_with("mabn{centralize=true,eps=0}"), {6, 5}},
      {conv2d_with("mabn{centralize=true,eps=0}"), {2, 3, 4, 4}}};
  for (const auto& [layer, shape] : rows) {
    LayerRun run(layer, shape, Mode::kProbe);
    check_central_differences(run);
  }
}

TEST_CASE("centralization: every unit's weights add up to 0, and so do their gradients") {
  const Tensor v = test::f64({2, 3}, {1, 2, 6, -1, 0, 4}),
               rows = test::f64({2, 3}, {-2, -1, 3, -2, -1, 3}),
               columns = test::f64({2, 3}, {1, 1, 1, -1, -1, -1});
  for (int unit_axis : {0, 1}) {
    test::OpCase c;
    c.inputs.push_back(v.clone());
    c.build = [&](Graph& g, const std::vector<Value>& in) {
      Net net{.graph = g};
      return std::vector{parametrize_weight(net, in[0], unit_axis, {.centralize = true}).weight};
    };
    test::gradcheck(c);
    const Results results = test::run_reference(c);
    test::check_close(results.at("y0"), unit_axis == 0 ? rows : columns);
    const Tensor& d = results.at("d0");
    const int stride = unit_axis == 0 ? 1 : 3, count = unit_axis == 0 ? 3 : 2;
    for (int unit = 0; unit < 6 / count; ++unit) {
      double sum = 0;
      for (int k = 0; k < count; ++k) sum += d.at(unit * (unit_axis == 0 ? 3 : 1) + k * stride);
      CHECK(std::abs(sum) < 1e-14);
    }
  }
}

TEST_CASE("centralization: comes before normalization, and images have units along axis 0") {
  test::OpCase c;
  c.inputs.push_back(test::random_normal({3, 2, 2, 2}, 1, 5));
  c.build = [](Graph& g, const std::vector<Value>& in) {
    Net net{.graph = g, .dtype = g.type(in[0]).dtype};
    return std::vector{
        parametrize_weight(net, in[0], 0, {.centralize = true, .normalize = true}).weight};
  };
  test::gradcheck(c);
  const Results results = test::run_reference(c);
  const Tensor& w = results.at("y0");
  for (std::int64_t unit = 0; unit < 3; ++unit) {
    double sum = 0, squares = 0;
    for (std::int64_t e = 8 * unit; e < 8 * unit + 8; ++e) {
      sum += w.at(e), squares += w.at(e) * w.at(e);
    }
    CHECK(std::abs(sum) < 1e-13);
    CHECK(squares == doctest::Approx(1).epsilon(1e-13));
  }
}

TEST_CASE("weight norms: without a layer before them they are refused") {
  Graph g;
  Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {4, 5}});
  const auto refused = [&](const std::string& text, std::string_view beginning) {
    const auto scope = g.scope("block");
    test::check_refused([&] { Norm::parse(text)(net, "norm", x); }, beginning,
                        "it acts on a layer's weight: expected a layer before block/norm");
  };
  refused("weightnorm", "[weightnorm] ");
  refused("mabn{centralize=true}", "[mabn] ");
  CHECK(g.shape(Norm::parse("weightnorm").alone(net, "n", x)) == Shape{4, 5});
  CHECK(g.shape(g.find_leaf("n/gain")) == Shape{4});
}

}  // namespace
}  // namespace keel::nn

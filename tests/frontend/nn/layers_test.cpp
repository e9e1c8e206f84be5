// Linear and convolution layers: parameters, names, initial values, results and gradients.
#include "frontend/nn/layers.h"

#include <set>

#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

using Names = std::vector<std::string>;

TEST_CASE("linear: y = x W + b") {
  LayerRun run([](Net& net, Value x) { return linear(net, "fc", x, 3); }, {4, 5});
  CHECK(run.parameters == Names{"fc/weight", "fc/bias"});
  run.variables.write("fc/bias", test::f64({3}, {1, -2, 3}));
  run.program->run();
  const Tensor x = test::random_normal({4, 5}, 5, 2, 3), w = run.read("fc/weight"),
               y = run.program->fetch("y", true);
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t out = 0; out < 3; ++out) {
      double expected = run.read("fc/bias").at(out);
      for (std::int64_t in = 0; in < 5; ++in) expected += x.at(row * 5 + in) * w.at(in * 3 + out);
      CHECK(y.at(row * 3 + out) == doctest::Approx(expected).epsilon(1e-13));
    }
  }
  check_every_parameter_learns(run);
}

TEST_CASE("linear: works on the last axis and leaves the others") {
  LayerRun run([](Net& net, Value x) { return linear(net, "fc", x, 3); }, {2, 3, 5});
  CHECK(run.graph.shape(run.graph.outputs()[0].value) == Shape{2, 3, 3});
  CHECK(run.read("fc/weight").shape() == Shape{5, 3});
}

TEST_CASE("conv2d: shapes, names and gradients") {
  const ConvLayer layer{.channels = 4, .window = 3, .stride = 2, .padding = 1};
  LayerRun run([&](Net& net, Value x) { return conv2d(net, "conv", x, layer); }, {2, 3, 7, 7});
  CHECK(run.parameters == Names{"conv/weight", "conv/bias"});
  CHECK(run.read("conv/weight").shape() == Shape{4, 3, 3, 3});
  CHECK(run.read("conv/bias").shape() == Shape{4});
  CHECK(run.graph.shape(run.graph.outputs()[0].value) == Shape{2, 4, 4, 4});
  run.program->run();
  check_every_parameter_learns(run);
}

TEST_CASE("layers: no bias where none is wanted") {
  LayerRun fc([](Net& net, Value x) { return linear(net, "fc", x, 3, {.bias = false}); }, {4, 5});
  CHECK(fc.parameters == Names{"fc/weight"});
  const auto convolve = [](Net& net, Value x) {
    return conv2d(net, "conv", x, {.channels = 2, .window = 3}, {.bias = false});
  };
  CHECK(LayerRun(convolve, {1, 1, 5, 5}).parameters == Names{"conv/weight"});
}

// The norm's own parameters are after the last slash of their names.
void check_what_decays(const LayerRun& run) {
  for (const std::string& name : run.parameters) {
    CAPTURE(name);
    const std::string own = name.substr(name.rfind('/') + 1);
    const std::set<std::string> known{"weight", "gain", "bias", "alpha", "shift", "a", "b"};
    CHECK(known.contains(own));
    const ParameterFacts& facts = run.graph.node(run.graph.find_leaf(name)).facts;
    CHECK(facts.decays == (own == "weight"));
    CHECK(facts.trains);
    CHECK(facts.lr_scale == 1);
  }
}

TEST_CASE("layers: gains and biases of layers and of all norms do not decay, weights do") {
  for (const NormFacts& facts : norm_facts()) {
    CAPTURE(facts.name);
    const LayerOptions options{.norm = Norm::parse(facts.any_width())};
    const std::string_view name = facts.name;
    const Shape shape = name.starts_with("instancenorm") ? Shape{2, 3, 4} : Shape{6, 4};
    check_what_decays(
        LayerRun([&](Net& net, Value x) { return linear(net, "fc", x, 4, options); }, shape));
  }
  const LayerOptions images{.norm = Norm::parse("layernorm{axes=3}")};
  check_what_decays(LayerRun(
      [&](Net& net, Value x) {
        return conv2d(net, "conv", x, {.channels = 2, .window = 3}, images);
      },
      {1, 1, 5, 5}));
}

TEST_CASE("layers: initial values know their fans") {
  using Fans = std::vector<std::pair<std::int64_t, std::int64_t>>;
  Fans fans;
  const FanInit record = [&](std::int64_t fan_in, std::int64_t fan_out) {
    fans.emplace_back(fan_in, fan_out);
    return zeros();
  };
  const LayerOptions options{.bias = true, .weight_init = record, .bias_init = record};
  LayerRun fc([&](Net& net, Value x) { return linear(net, "fc", x, 3, options); }, {4, 5});
  const auto convolve = [&](Net& net, Value x) {
    return conv2d(net, "conv", x, {.channels = 2, .window = 3}, options);
  };
  LayerRun conv(convolve, {1, 4, 5, 5});
  CHECK(fans == Fans{{5, 3}, {5, 3}, {36, 18}, {36, 18}});
  // A shared table stands there already, (out, in); only the bias begins here.
  fans.clear();
  LayerRun shared(
      [&](Net& net, Value x) {
        return Linear::sharing(net, "out", net.parameter("table", {7, 5}, zeros()), options)(x);
      },
      {4, 5});
  CHECK(fans == Fans{{5, 7}});
}

TEST_CASE("layers: a function of the fan-in alone, and Xavier's of both") {
  const auto largest_weight = [](const FanInit& init) {
    LayerRun run(
        [&](Net& net, Value x) { return linear(net, "fc", x, 500, {.weight_init = init}); },
        {1, 100});
    return largest(run.read("fc/weight"));
  };
  // The largest of 50000 numbers below a bound is within 1e-3 of it, but for one seed in 1e21.
  CHECK(largest_weight(fan_in_uniform) == doctest::Approx(0.1).epsilon(1e-3));
  CHECK(largest_weight(xavier()) == doctest::Approx(0.1).epsilon(1e-3));  // sqrt(6 / 600)
  CHECK(largest_weight(xavier(3)) == doctest::Approx(0.3).epsilon(1e-3));
}

TEST_CASE("layers: default weights have variance 1 / fan-in, biases are zero") {
  LayerRun run([](Net& net, Value x) { return linear(net, "fc", x, 200); }, {1, 100});
  double squares = 0;
  const Tensor w = run.read("fc/weight");
  for (std::int64_t e = 0; e < w.elements(); ++e) squares += w.at(e) * w.at(e);
  CHECK(squares / double(w.elements()) == doctest::Approx(0.01).epsilon(0.05));
  CHECK(largest(run.read("fc/bias")) == 0);
}

TEST_CASE("layers: scopes nest, and one name twice is refused") {
  Graph g;
  Net net{.graph = g};
  const Value x = g.input("x", {DType::kF32, {2, 4}});
  const auto scope = g.scope("block");
  linear(net, "fc", x, 4);
  CHECK(g.find_leaf("block/fc/weight").valid());
  test::check_refused([&] { linear(net, "fc", x, 4); }, "", "block/fc/weight");
}

}  // namespace
}  // namespace keel::nn

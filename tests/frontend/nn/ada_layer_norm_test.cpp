// adaLN-Zero: it begins as x itself, its formula element by element, and gradients.
#include "frontend/nn/ada_layer_norm.h"

#include "frontend/nn/layers.h"
#include "src/ops/layout.h"
#include "tests/frontend/nn/helpers.h"
#include "tests/support/checks.h"

namespace keel::nn {
namespace {

constexpr std::int64_t kSentences = 2, kTokens = 3, kModelWidth = 4, kConditionWidth = 5;
const Shape kTokensShape{kSentences, kTokens, kModelWidth};

Tensor condition() { return test::random_normal({kSentences, kConditionWidth}, 11); }

// F(h) = h^2 W, with a condition that is constant.
Layer modulated() {
  return [](Net& net, Value x) {
    const Value c = net.graph.constant(condition().to(DType::kF32));
    return ada_layer_norm_zero(net, "block", x, c, [&](Value h) {
      return linear(net, "f", ops::square(net.graph, h), kModelWidth, {.bias = false});
    });
  };
}

// Condition and x are both made of a layer before, so that its gradient is also that by the two.
Layer with_layer_before() {
  return [](Net& net, Value x) {
    Graph& g = net.graph;
    const Value h = linear(net, "before", x, kModelWidth);
    const Value first = ops::reshape(g, ops::slice_axis(g, h, 1, 0, 1), {kSentences, kModelWidth});
    return ada_layer_norm_zero(net, "block", h, first, [&](Value v) { return ops::square(g, v); });
  };
}

void open_gates(LayerRun& run) {
  for (const char* name : {"block/modulation/weight", "block/modulation/bias"}) {
    run.variables.write(name, test::random_normal(run.read(name).shape(), 13, 0.1, 0.5));
  }
}

}  // namespace

TEST_CASE("adaLN-Zero: it begins as x itself, and its gate is the first to learn") {
  LayerRun run(modulated(), kTokensShape);
  CHECK(run.parameters == std::vector<std::string>{"block/modulation/weight",
                                                   "block/modulation/bias", "block/f/weight"});
  run.program->run();
  test::check_close(run.program->fetch("y", true), test::random_normal(kTokensShape, 5, 2, 3), 0);
  CHECK(largest(run.program->fetch("d block/f/weight", true)) == 0);
  const Tensor d = run.program->fetch("d block/modulation/bias", true);
  for (std::int64_t i = 0; i < 3 * kModelWidth; ++i)
    CHECK((d.at(i) != 0) == (i >= 2 * kModelWidth));
}

TEST_CASE("adaLN-Zero: the formula, element by element") {
  LayerRun run(modulated(), kTokensShape);
  open_gates(run);
  run.variables.write("block/f/weight",
                      test::f64({4, 4}, {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2}));
  run.program->run();
  const Tensor x = test::random_normal(kTokensShape, 5, 2, 3), y = run.program->fetch("y", true),
               c = condition(), weight = run.read("block/modulation/weight"),
               bias = run.read("block/modulation/bias");
  const auto modulation = [&](std::int64_t row, std::int64_t column) {
    double sum = bias.at(column);
    for (std::int64_t i = 0; i < kConditionWidth; ++i) {
      const double a = c.at(row * kConditionWidth + i);
      sum += a / (1 + std::exp(-a)) * weight.at(i * 3 * kModelWidth + column);
    }
    return sum;
  };
  for (std::int64_t e = 0; e < x.elements(); ++e) {
    const std::int64_t row = e / (kTokens * kModelWidth), i = e % kModelWidth, first = e - i;
    double mean = 0, variance = 0;
    for (std::int64_t j = 0; j < kModelWidth; ++j) mean += x.at(first + j) / kModelWidth;
    for (std::int64_t j = 0; j < kModelWidth; ++j) {
      variance += (x.at(first + j) - mean) * (x.at(first + j) - mean) / kModelWidth;
    }
    const double normed = (x.at(e) - mean) / std::sqrt(variance + 1e-6);
    const double h = normed * (1 + modulation(row, kModelWidth + i)) + modulation(row, i);
    const double expected = x.at(e) + modulation(row, 2 * kModelWidth + i) * 2 * h * h;
    CHECK(y.at(e) == doctest::Approx(expected).epsilon(1e-5));
  }
}

TEST_CASE("adaLN-Zero: gradients by x, the condition and all parameters") {
  for (const Layer& layer : {modulated(), with_layer_before()}) {
    LayerRun run(layer, kTokensShape);
    open_gates(run);
    check_central_differences(run);
  }
}

TEST_CASE("adaLN-Zero: refusals") {
  const auto refused = [](const Shape& x, const Shape& c, std::string_view message) {
    test::check_refused(
        [&] {
          Graph g;
          Net net{.graph = g};
          ada_layer_norm_zero(net, "block", g.input("x", {DType::kF32, x}),
                              g.input("c", {DType::kF32, c}), [](Value h) { return h; });
        },
        "[ada_layer_norm_zero] ", message);
  };
  refused({3, 4}, {3, 5}, "x: expected (batch, ..., width), got (3, 4)");
  refused({2, 3, 4}, {3, 5}, "c: expected (2, conditions), got (3, 5)");
  refused({2, 3, 4}, {2, 1, 5}, "c: expected (2, conditions), got (2, 1, 5)");
}

}  // namespace keel::nn

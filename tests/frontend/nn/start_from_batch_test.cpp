// The first values that weight normalization takes from the first batch.
#include <doctest/doctest.h>

#include <cmath>

#include "backends/backends.h"
#include "frontend/nn/layers.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "tests/support/checks.h"
#include "tests/support/tested_backends.h"

namespace keel::nn {
namespace {

// A convolution of 4 channels and a layer of 3 units after it, both with weightnorm.
struct TwoLayers {
  std::unique_ptr<Backend> backend;
  Variables variables{*backend, 7};
  bool bias = true;
  std::int64_t rows = 8;
  std::string norm = "weightnorm";

  // The layers' pre-activations "y1" and "y2" of a batch, after a run in that mode.
  Results run(Mode mode) {
    Graph g;
    Net net{.graph = g, .mode = mode};
    const LayerOptions layer{.bias = bias, .norm = Norm::parse(norm)};
    const Value x = g.input("x", {DType::kF32, {rows, 2, 5, 5}});
    const Value y1 = conv2d(net, "conv", x, {.channels = 4, .window = 3}, layer);
    const Value h = ops::reshape(g, ops::relu(g, y1), {rows, 36});
    const Value y2 = linear(net, "fc", h, 3, layer);
    g.mark_output("y1", y1);
    g.mark_output("y2", y2);
    Program program(*backend, variables, g);
    program.feed("x", test::random_normal({rows, 2, 5, 5}, 5, 2, 3));
    program.run();
    Results results;
    for (const char* name : {"y1", "y2"}) results[name] = program.fetch(name, true);
    return results;
  }
};

// Mean and deviation of the unit's elements of y (rows, units) or (rows, units, h, w).
std::pair<double, double> unit_moments(const Tensor& y, std::int64_t unit) {
  const std::int64_t inner = y.shape().rank() == 4 ? y.shape().elements(2, 4) : 1;
  const double n = double(y.elements()) / double(y.shape()[1]);
  double mean = 0, var = 0;
  const auto for_unit = [&](auto body) {
    for (std::int64_t e = 0; e < y.elements(); ++e) {
      if (e / inner % y.shape()[1] == unit) body(y.at(e));
    }
  };
  for_unit([&](double value) { mean += value / n; });
  for_unit([&](double value) { var += (value - mean) * (value - mean) / n; });
  return {mean, std::sqrt(var)};
}

TEST_CASE("weightnorm: the first batch gives every layer's units mean 0 and deviation 1") {
  for (const std::string& name : test::tested_backends()) {
    CAPTURE(name);
    TwoLayers layers{make_backend(name)};
    const Results handed_on = layers.run(Mode::kDataDependentInit);
    const Results results = layers.run(Mode::kTrain);
    // Rounding of f32: products of up to 36 terms whose sizes add up to less than 100.
    const double tolerance = name == "reference" ? 1e-13 : 2e-5;
    for (const char* y : {"y1", "y2"}) {
      CAPTURE(std::string(y));
      test::check_close(handed_on.at(y), results.at(y), tolerance);
      for (std::int64_t unit = 0; unit < results.at(y).shape()[1]; ++unit) {
        const auto [mean, deviation] = unit_moments(results.at(y), unit);
        CHECK(std::abs(mean) <= tolerance);
        CHECK(std::abs(deviation - 1) <= tolerance);
      }
    }
  }
}

TEST_CASE("weightnorm: first values are the same on every backend, up to rounding") {
  TwoLayers a{make_backend("reference")}, b{make_backend(default_backend())};
  a.run(Mode::kDataDependentInit);
  b.run(Mode::kDataDependentInit);
  for (const char* name : {"conv/norm/gain", "conv/bias", "fc/norm/gain", "fc/bias"}) {
    test::check_close(b.variables.read(name), a.variables.read(name), 2e-5);
  }
}

TEST_CASE("weightnorm: without a bias the mean stays, and only kDataDependentInit writes") {
  TwoLayers layers{make_backend("reference")};
  layers.bias = false;
  const Results before = layers.run(Mode::kTrain);
  layers.run(Mode::kDataDependentInit);
  const Results after = layers.run(Mode::kProbe);
  for (std::int64_t unit = 0; unit < 4; ++unit) {
    const auto [mean, deviation] = unit_moments(before.at("y1"), unit);
    const auto [new_mean, new_deviation] = unit_moments(after.at("y1"), unit);
    CHECK(new_deviation == doctest::Approx(1).epsilon(1e-12));
    CHECK(new_mean == doctest::Approx(mean / deviation).epsilon(1e-9));
    CHECK(layers.variables.read("conv/norm/gain").at(unit) ==
          doctest::Approx(1 / deviation).epsilon(1e-6));
  }
}

TEST_CASE("weightnorm: the first batch gives units the deviation gain_init") {
  TwoLayers layers{make_backend("reference")};
  layers.norm = "weightnorm{gain_init=0.25}";
  layers.run(Mode::kDataDependentInit);
  const Results results = layers.run(Mode::kTrain);
  for (const char* y : {"y1", "y2"}) {
    CAPTURE(std::string(y));
    for (std::int64_t unit = 0; unit < results.at(y).shape()[1]; ++unit) {
      const auto [mean, deviation] = unit_moments(results.at(y), unit);
      CHECK(std::abs(mean) <= 1e-13);
      CHECK(std::abs(deviation - 0.25) <= 1e-13);
    }
  }
  TwoLayers of_one_row{make_backend("reference")};
  of_one_row.norm = layers.norm;
  of_one_row.rows = 1;
  of_one_row.run(Mode::kDataDependentInit);
  CHECK(of_one_row.variables.read("fc/norm/gain").at(0) == 0.25);
}

TEST_CASE("weightnorm: a unit that is constant in the batch keeps its length") {
  TwoLayers layers{make_backend(default_backend())};
  layers.rows = 1;
  layers.run(Mode::kDataDependentInit);
  CHECK(layers.variables.read("conv/norm/gain").at(0) != 1);  // an image has many places
  const Results results = layers.run(Mode::kTrain);
  for (std::int64_t unit = 0; unit < 3; ++unit) {
    CHECK(layers.variables.read("fc/norm/gain").at(unit) == 1);
    CHECK(std::abs(results.at("y2").at(unit)) <= 1e-5);
  }
}

}  // namespace
}  // namespace keel::nn

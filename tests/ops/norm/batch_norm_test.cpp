// Batch norm: the promises of every norm for tokens and images, worked examples, the running
// statistics, evaluation, refusals.
#include "src/ops/norm/batch_norm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "backends/backends.h"
#include "src/runtime/program.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"
#include "tests/support/norm_template.h"
#include "tests/support/tested_backends.h"

namespace keel::test {
namespace {

NormBuild batch_norm(BatchNormAttrs attrs = {}) {
  return [attrs](Graph& g, const NormInputs& in, double eps) mutable {
    attrs.eps = eps;
    return ops::batch_norm(g, in.x, {in.gain, in.bias}, {in.state[0], in.state[1]}, attrs);
  };
}

// The values of y, mean, rstd, mean', var' for x = (1, 3, 8), running mean 10 and var 20.
std::vector<double> run_three(const std::string& backend, const BatchNormAttrs& attrs) {
  NormData data{f64({3, 1}, {1, 3, 8}), f64({3, 1}, {1, 1, 1}), {}, {}, {}, 1e-5};
  data.state.push_back(f64({1}, {10}));
  data.state.push_back(f64({1}, {20}));
  const NormResult result = run_norm(*make_backend(backend), batch_norm(attrs), data);
  std::vector<double> values{result.outputs[BatchNormOutput::kY].at(0)};
  for (int j = 1; j < 5; ++j) {
    const Tensor& output = result.outputs[std::size_t(j)];
    if (output.elements() > 0) values.push_back(output.at(0));
  }
  return values;
}

void check_three(const BatchNormAttrs& attrs, const std::vector<double>& expected) {
  for (const std::string& backend : tested_backends()) {
    CAPTURE(backend);
    const std::vector<double> got = run_three(backend, attrs);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-6));
    }
  }
}

}  // namespace

TEST_CASE("batch_norm: what every norm promises, tokens" * doctest::test_suite("slow")) {
  check_norm({batch_norm(), NormLayout::kColumns, 2});
}

TEST_CASE("batch_norm: what every norm promises, images" * doctest::test_suite("slow")) {
  check_norm({batch_norm(), NormLayout::kImages, 2});
  check_norm({batch_norm(), NormLayout::kThumbnails, 2});
}

TEST_CASE("batch_norm: what every norm promises, unbiased" * doctest::test_suite("slow")) {
  check_norm({batch_norm({.unbiased = true, .running_unbiased = true}), NormLayout::kColumns, 2,
              nullptr, 2});
}

TEST_CASE("batch_norm: worked example") {
  check_golden({batch_norm(), NormLayout::kColumns, 2}, "BatchNorm", {"y", "dx", "dgamma"});
}

// Mean 4, sum of squares 26.
TEST_CASE("batch_norm: running <- keep * running + (1 - keep) * batch") {
  const double biased = 1 / std::sqrt(26. / 3 + 1e-5), unbiased = 1 / std::sqrt(13 + 1e-5);
  const double mean = 0.75 * 10 + 0.25 * 4;
  check_three({.keep = 0.75}, {-3 * biased, 4, biased, mean, 15 + 0.25 * 26 / 3});
  check_three({.keep = 0.75, .running_unbiased = true},
              {-3 * biased, 4, biased, mean, 15 + 0.25 * 13});
  check_three({.keep = 0.75, .unbiased = true},
              {-3 * unbiased, 4, unbiased, mean, 15 + 0.25 * 26 / 3});
  check_three({.keep = 0.75, .unbiased = true, .running_unbiased = true},
              {-3 * unbiased, 4, unbiased, mean, 15 + 0.25 * 13});
}

TEST_CASE("batch_norm: evaluation uses the running statistics and has no new ones") {
  const double rstd = 1 / std::sqrt(20 + 1e-5);
  check_three({.training = false}, {-9 * rstd, 10, rstd});
}

TEST_CASE("batch_norm: what every norm promises, evaluation" * doctest::test_suite("slow")) {
  const NormBuild evaluation = batch_norm({.training = false});
  check_norm({evaluation, NormLayout::kColumns, 2, nullptr, 1, false});
  check_norm({evaluation, NormLayout::kImages, 2, nullptr, 1, false});
  check_norm({evaluation, NormLayout::kThumbnails, 2, nullptr, 1, false});
}

TEST_CASE("batch_norm: a step updates the state, evaluation does not") {
  for (bool training : {true, false}) {
    for (const std::string& name : tested_backends()) {
      const auto backend = make_backend(name);
      Graph g;
      const TensorType three{DType::kF32, {3}};
      const auto filled = [](float value) {
        return [value](Tensor& t, const Philox&) { std::ranges::fill(t.as<float>(), value); };
      };
      const Value mean = g.state("mean", three, filled(0)), var = g.state("var", three, filled(1));
      const Value x = g.input("x", {DType::kF32, {4, 3}});
      const Value y = ops::batch_norm(g, x, {}, {mean, var}, {.keep = 0.5, .training = training});
      if (training) {
        g.mark_update(mean, y.at(BatchNormOutput::kNextRunningMean));
        g.mark_update(var, y.at(BatchNormOutput::kNextRunningVar));
      }
      g.mark_output("y", y);
      Variables variables(*backend, 1);
      Program program(*backend, variables, g);
      program.feed("x", f64({4, 3}, {1, 2, 3, 1, 2, 3, 3, 4, 5, 3, 4, 5}));
      for (int run = 1; run <= 2; ++run) {
        program.run();
        const double kept = training ? std::pow(0.5, run) : 1;
        CHECK(variables.read("mean").at(2) == doctest::Approx(training ? 4 * (1 - kept) : 0));
        CHECK(variables.read("var").at(2) == doctest::Approx(1));  // the batch's is 1 as well
      }
    }
  }
}

TEST_CASE("batch_norm: refusals") {
  struct Types {
    Shape x{4, 3}, gain{3}, bias{3}, mean{3}, var{3};
  };
  const auto refused = [](const Types& t, const BatchNormAttrs& attrs, std::string_view message) {
    std::vector<TensorType> inputs;
    for (const Shape& shape : {t.x, t.gain, t.bias, t.mean, t.var}) {
      inputs.push_back({DType::kF32, shape});
    }
    check_op_refused(
        inputs,
        [&](Graph& g, const std::vector<Value>& in) {
          return std::vector{ops::batch_norm(g, in[0], {in[1], in[2]}, {in[3], in[4]}, attrs)};
        },
        "batch_norm", message);
  };
  refused({.x = {3}}, {}, "x: expected (rows, channels) or (n, channels, h, w), got (3)");
  refused({.x = {2, 4, 3}}, {}, "x: expected (rows, channels) or (n, channels, h, w)");
  refused({.x = {0, 3}}, {}, "x: expected at least one element a feature, got (0, 3)");
  refused({.x = {4, 3, 0, 2}}, {}, "x: expected at least one element a feature");
  refused({.gain = {4}}, {}, "gain: expected (3), got (4)");
  refused({.bias = {4}}, {}, "bias: expected (3), got (4)");
  refused({.mean = {1}}, {}, "running_mean: expected (3), got (1)");
  refused({.var = {3, 1}}, {}, "running_var: expected (3), got (3, 1)");
  refused({}, {.eps = -1e-5}, "eps: expected >= 0, got -1e-05");
  refused({}, {.keep = 1.5}, "keep: expected in [0, 1], got 1.5");
  refused({}, {.keep = -0.5}, "keep: expected in [0, 1], got -0.5");
  refused({.x = {1, 3}}, {.unbiased = true}, "x: expected at least 2 elements a statistic");
  refused({.x = {1, 3}}, {.running_unbiased = true}, "x: expected at least 2 elements a statistic");
}

TEST_CASE("batch_norm: a batch of one row gives the bias") {
  const Tensor x = f64({1, 2}, {5, -7});
  OpCase c;
  c.inputs.push_back(f64({1, 2}, {5, -7}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& in) {
    const auto row = [&](double v) { return g.constant(f64({2}, {v, v})); };
    const Value y = ops::batch_norm(g, in[0], {row(3), row(0.25)}, {row(0), row(1)}, {.keep = 0.5});
    return std::vector{y, y.at(BatchNormOutput::kNextRunningMean),
                       y.at(BatchNormOutput::kNextRunningVar)};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({1, 2}, {0.25, 0.25}));
  check_close(results.at("y1"), f64({2}, {2.5, -3.5}));
  check_close(results.at("y2"), f64({2}, {0.5, 0.5}));
}

}  // namespace keel::test

// Ops that change the gradient on its way back.
#include "src/ops/stop_gradient.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

TEST_CASE("stop_gradient: passes the value and holds the gradient back") {
  OpCase c;
  c.inputs.push_back(random_normal({3}, 1));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::stop_gradient(g, v[0]),
                       ops::mul(g, v[0], ops::stop_gradient(g, ops::scale(g, v[0], 2)))};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), c.inputs[0], 0);
  // Only the first factor of x * 2x moves; y0 does not move at all.
  const Tensor weights = random_normal({3}, 901);
  for (std::int64_t e = 0; e < 3; ++e) {
    CHECK(results.at("d0").at(e) == doctest::Approx(weights.at(e) * 2 * c.inputs[0].at(e)));
  }
}

TEST_CASE("clip_gradient: passes the value, and of the gradient what is within the limit") {
  OpCase c;
  c.inputs.push_back(f64({5}, {1, 2, 3, 4, 5}));
  c.inputs.push_back(f64({5}, {0.5, -0.5, 10, -10, std::nan("")}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value y = ops::clip_gradient(g, v[0], 2);
    const Value loss = ops::sum(g, ops::mul(g, y, v[1]));
    return std::vector{y, gradient(g, loss, std::vector{v[0]})[0]};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), c.inputs[0], 0);
  check_close(results.at("y1"), f64({5}, {0.5, -0.5, 2, -2, std::nan("")}), 0);
}

TEST_CASE("clip_gradient: what comes of several uses is clipped together") {
  OpCase c;
  c.inputs.push_back(f64({2}, {1, 1}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value y = ops::clip_gradient(g, v[0], 1.5);
    const Value twice = ops::add(g, y, ops::scale(g, y, 0.75));
    return gradient(g, ops::sum(g, twice), std::vector{v[0]});
  };
  check_close(run_reference(c).at("y0"), f64({2}, {1.5, 1.5}), 0);
}

TEST_CASE("clip_gradient: refusals") {
  const auto clip = [](double limit) -> Build {
    return [limit](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::clip_gradient(g, v[0], limit)};
    };
  };
  check_op_refused({{DType::kF32, {3}}}, clip(0), "clip_gradient",
                   "limit: expected above 0, got 0");
  check_op_refused({{DType::kI32, {3}}}, clip(1), "clip_gradient", "x: expected a floating type");
}

}  // namespace
}  // namespace keel::test

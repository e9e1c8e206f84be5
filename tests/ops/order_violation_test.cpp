// Errors of an order between points.
#include "src/ops/order_violation.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

OpCase order_violation_of(Tensor x, Tensor y) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.inputs.push_back(std::move(y));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::order_violation(g, v[0], v[1])};
  };
  return c;
}

TEST_CASE("order_violation: values by hand, and 0 exactly where y is at least x everywhere") {
  OpCase c = order_violation_of(f64({2, 3}, {1, 2, 3, 0.5, 0, 0}),
                                f64({3, 3}, {1, 2, 3, 0, 1, 5, 1, 0, 0}));
  c.gradients = false;
  check_close(run_reference(c).at("y0"), f64({2, 3}, {0, 2, 13, 0, 0.25, 0}), 0);
}

TEST_CASE("order_violation: it is 0 if and only if x stands below y") {
  OpCase c = order_violation_of(random_normal({40, 2}, 1), random_normal({50, 2}, 2));
  c.gradients = false;
  const Results results = run_reference(c);
  const Tensor& e = results.at("y0");
  const Tensor &x = c.inputs[0], &y = c.inputs[1];
  int below = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    for (std::int64_t j = 0; j < 50; ++j) {
      const bool stands = x.at(2 * i) <= y.at(2 * j) && x.at(2 * i + 1) <= y.at(2 * j + 1);
      CHECK(e.at(50 * i + j) >= 0);
      CHECK((e.at(50 * i + j) == 0) == stands);
      below += stands;
    }
  }
  CHECK(below > 100);
}

TEST_CASE("order_violation: gradients") {
  gradcheck(order_violation_of(random_normal({4, 3}, 1), random_normal({5, 3}, 2)));
  gradcheck(order_violation_of(random_normal({1, 7}, 3), random_normal({1, 7}, 4)));
  gradcheck(order_violation_of(random_normal({20, 9}, 5), random_normal({20, 9}, 6)));
}

TEST_CASE("order_violation: points that are alone, and none") {
  OpCase c = order_violation_of(random_normal({3, 0}, 1), random_normal({2, 0}, 2));
  c.gradients = false;
  check_close(run_reference(c).at("y0"), f64({3, 2}, {0, 0, 0, 0, 0, 0}), 0);
  c = order_violation_of(random_normal({0, 4}, 1), random_normal({2, 4}, 2));
  CHECK(run_reference(c).at("y0").shape() == Shape{0, 2});
  check_close(run_reference(c).at("d1"), f64({2, 4}, {0, 0, 0, 0, 0, 0, 0, 0}), 0);
}

TEST_CASE("order_violation: refusals") {
  const Build build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::order_violation(g, v[0], v[1])};
  };
  const TensorType x{DType::kF32, {4, 3}};
  const auto refused = [&](const TensorType& a, const TensorType& b, const char* part) {
    check_op_refused({a, b}, build, "order_violation", part);
  };
  refused({DType::kF32, {4}}, x, "x: expected (n, width), got (4)");
  refused({DType::kI32, {4, 3}}, x, "x: expected a floating");
  refused(x, {DType::kF64, {4, 3}}, "y: expected f32, got f64");
  refused(x, {DType::kF32, {4, 5}}, "y: expected (m, 3), got (4, 5)");
  refused(x, {DType::kF32, {3}}, "y: expected (m, 3), got (3)");
}

}  // namespace
}  // namespace keel::test

// Softmax and its logarithm.
#include "src/ops/softmax.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

OpCase both(Tensor x) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::softmax(g, v[0]), ops::log_softmax(g, v[0])};
  };
  return c;
}

TEST_CASE("softmax: values by hand") {
  OpCase c = both(f64({2, 2}, {0, std::log(3.0), 5, 5}));
  c.gradients = false;
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2, 2}, {0.25, 0.75, 0.5, 0.5}), 1e-15);
  const double half = std::log(0.5);
  check_close(results.at("y1"), f64({2, 2}, {std::log(0.25), std::log(0.75), half, half}), 1e-15);
}

TEST_CASE("softmax: large logits stay finite and a class may be impossible") {
  OpCase c = both(f64({2, 3}, {1e300, 1e300, -1e300, 1, -kInfinity, 1}));
  c.gradients = false;
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2, 3}, {0.5, 0.5, 0, 0.5, 0, 0.5}), 1e-15);
  CHECK(results.at("y1").at(0) == doctest::Approx(std::log(0.5)));
  CHECK(results.at("y1").at(4) == -kInfinity);
}

TEST_CASE("softmax: every row adds up to 1 and does not see the others") {
  OpCase c = both(random_normal({3, 2, 5}, 1, 10, 3));
  c.gradients = false;
  const Tensor all = run_reference(c).at("y0").clone();
  for (std::int64_t row = 0; row < 6; ++row) {
    double total = 0;
    Tensor alone(DType::kF64, {5});
    for (std::int64_t k = 0; k < 5; ++k) {
      total += all.at(row * 5 + k);
      alone.as<double>()[std::size_t(k)] = c.inputs[0].at(row * 5 + k);
    }
    CHECK(total == doctest::Approx(1).epsilon(1e-15));
    OpCase single = both(std::move(alone));
    single.gradients = false;
    CHECK(run_reference(single).at("y0").at(2) == all.at(row * 5 + 2));
  }
}

TEST_CASE("softmax: gradients") {
  for (const Shape& shape : {Shape{1}, Shape{4}, Shape{3, 1}, Shape{3, 5}, Shape{2, 1, 2, 3}}) {
    CAPTURE(shape.text());
    gradcheck(both(random_normal(shape, 2)));
  }
}

TEST_CASE("softmax: refusals") {
  const std::pair<const char*, Value (*)(Graph&, Value)> rows[] = {
      {"softmax", ops::softmax}, {"log_softmax", ops::log_softmax}};
  for (const auto& [name, op] : rows) {
    const Build build = [op = op](Graph& g, const std::vector<Value>& v) {
      return std::vector{op(g, v[0])};
    };
    check_op_refused({{DType::kF32, {}}}, build, name, "x: expected (..., width >= 1), got ()");
    check_op_refused({{DType::kF32, {3, 0}}}, build, name, "got (3, 0)");
    check_op_refused({{DType::kI32, {3}}}, build, name, "expected a floating type, got i32");
  }
}

}  // namespace
}  // namespace keel::test

// The contracts of src/ops/search.h.
#include "src/ops/search.h"

#include <doctest/doctest.h>

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

OpCase top_k_case(Tensor x, std::int64_t k) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.gradients = false;
  c.build = [k](Graph& g, const std::vector<Value>& v) {
    const ops::Ranked ranked = ops::top_k(g, v[0], k);
    return std::vector{ranked.values, ranked.indices};
  };
  return c;
}

TEST_CASE("top_k: the largest first, of equal ones the first, NaN before all") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const Results some = run_reference(top_k_case(f64({2, 4}, {1, 3, 2, 3, -1, -5, -1, 0}), 3));
  check_close(some.at("y0"), f64({2, 3}, {3, 3, 2, 0, -1, -1}));
  check_close(some.at("y1"), i32({2, 3}, {1, 3, 2, 3, 0, 2}));
  const Results all = run_reference(top_k_case(f64({1, 5}, {-infinity, nan, infinity, nan, 0}), 5));
  check_close(all.at("y0"), f64({1, 5}, {nan, nan, infinity, 0, -infinity}));
  check_close(all.at("y1"), i32({1, 5}, {1, 3, 2, 4, 0}));
  check_close(run_reference(top_k_case(f64({3, 1}, {4, 5, 6}), 1)).at("y1"),
              i32({3, 1}, {0, 0, 0}));
}

OpCase put_case(Tensor memory, Tensor x, std::int32_t t) {
  OpCase c;
  c.inputs.push_back(std::move(memory));
  c.inputs.push_back(std::move(x));
  c.inputs.push_back(i32({}, {t}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::scatter(g, v[0], v[1], v[2])};
  };
  return c;
}

TEST_CASE("scatter: one place of every row; a place that is not there is seen") {
  const auto y = [](std::int32_t t) {
    return run_reference(put_case(f64({2, 3, 1}, {1, 2, 3, 4, 5, 6}), f64({2, 1, 1}, {7, 8}), t))
        .at("y0")
        .clone();
  };
  check_close(y(0), f64({2, 3, 1}, {7, 2, 3, 8, 5, 6}));
  check_close(y(2), f64({2, 3, 1}, {1, 2, 7, 4, 5, 8}));
  for (const std::int32_t outside : {-1, 3}) {
    check_close(y(outside), f64({2, 3, 1}, {std::nan(""), 2, 3, 4, 5, 6}));
  }
}

TEST_CASE("take_rows: rows in another order, some of them twice") {
  OpCase c;
  c.inputs.push_back(f64({3, 1, 2}, {1, 2, 3, 4, 5, 6}));
  c.inputs.push_back(i32({4}, {2, 0, 2, 1}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::take_rows(g, v[0], v[1])};
  };
  check_close(run_reference(c).at("y0"), f64({4, 1, 2}, {5, 6, 1, 2, 5, 6, 3, 4}));
}

TEST_CASE("search: refusals") {
  const auto ranked = [](std::int64_t k) -> Build {
    return [k](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::top_k(g, v[0], k).values};
    };
  };
  const TensorType x{DType::kF32, {2, 3}};
  check_op_refused({x}, ranked(4), "top_k", "k: expected 1 to the width 3, got 4");
  check_op_refused({x}, ranked(0), "top_k", "k: expected 1 to the width 3, got 0");
  check_op_refused({{DType::kF32, {3}}}, ranked(1), "top_k", "x: expected (rows, width), got (3)");
  check_op_refused({{DType::kI32, {2, 3}}}, ranked(1), "top_k", "x: expected a floating");
  const Build scatter = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::scatter(g, v[0], v[1], v[2])};
  };
  const TensorType memory{DType::kF32, {2, 5, 3}}, row{DType::kF32, {2, 1, 3}}, t{DType::kI32, {}};
  check_op_refused({x, row, t}, scatter, "scatter",
                   "memory: expected (rows, length, width), got (2, 3)");
  check_op_refused({memory, memory, t}, scatter, "scatter", "x: expected (2, 1, 3), got (2, 5, 3)");
  check_op_refused({memory, {DType::kF64, {2, 1, 3}}, t}, scatter, "scatter",
                   "x: expected f32, got f64");
  check_op_refused({memory, row, {DType::kI32, {1}}}, scatter, "scatter",
                   "t: expected (), got (1)");
  check_op_refused({memory, row, {DType::kF32, {}}}, scatter, "scatter",
                   "t: expected i32, got f32");
}

TEST_CASE("search: there is no gradient") {
  Graph g;
  const Value x = g.parameter("x", {DType::kF32, {2, 3}}, nullptr);
  const Value loss = ops::sum(g, ops::top_k(g, x, 2).values);
  check_refused([&] { gradient(g, loss, std::vector{x}); }, "", "top_k");
}

}  // namespace
}  // namespace keel::test

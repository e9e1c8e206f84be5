// Element-wise ops: gradients, by central differences and at the places where these do not apply.
#include <doctest/doctest.h>

#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

using Unary = Value (*)(Graph&, Value);
using Binary = Value (*)(Graph&, Value, Value);

// Normal numbers pushed away from 0, where abs, relu and division are not smooth.
Tensor away_from_zero(const Shape& shape, std::uint32_t stream) {
  Tensor t = random_normal(shape, stream);
  for (double& x : t.as<double>()) x += x < 0 ? -0.2 : 0.2;
  return t;
}

Tensor positive(const Shape& shape, std::uint32_t stream) {
  Tensor t = away_from_zero(shape, stream);
  for (double& x : t.as<double>()) x = std::abs(x);
  return t;
}

Build build_of(Unary op) {
  return [op](Graph& g, const std::vector<Value>& v) { return std::vector{op(g, v[0])}; };
}
Build build_of(Binary op) {
  return [op](Graph& g, const std::vector<Value>& v) { return std::vector{op(g, v[0], v[1])}; };
}

struct GradientRow {
  const char* name;
  Unary op;
  bool positive_only = false;
};

TEST_CASE("elementwise gradients: one operand") {
  const GradientRow rows[] = {
      {"scale", [](Graph& g, Value x) { return ops::scale(g, x, -1.5, 2); }},
      {"cast", [](Graph& g, Value x) { return ops::cast(g, x, DType::kF32); }},
      {"neg", ops::neg},
      {"square", ops::square},
      {"sqrt", ops::sqrt, true},
      {"exp", ops::exp},
      {"log", ops::log, true},
      {"abs", ops::abs},
      {"relu", ops::relu},
      {"tanh", ops::tanh},
      {"sigmoid", ops::sigmoid},
      {"gelu", ops::gelu},
      {"softplus", ops::softplus}};
  for (const GradientRow& row : rows) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3, 2}}) {
      CAPTURE(row.name);
      CAPTURE(shape.text());
      OpCase c;
      c.inputs.push_back(row.positive_only ? positive(shape, 3) : away_from_zero(shape, 3));
      c.build = build_of(row.op);
      gradcheck(c);
    }
  }
}

TEST_CASE("elementwise gradients: two operands are added up where they were stretched") {
  const std::pair<const char*, Binary> rows[] = {
      {"add", ops::add}, {"sub", ops::sub},         {"mul", ops::mul},
      {"div", ops::div}, {"maximum", ops::maximum}, {"minimum", ops::minimum}};
  const std::pair<Shape, Shape> pairs[] = {
      {{}, {}},         {{3}, {}},           {{}, {2, 3}},
      {{2, 3}, {3}},    {{2, 1}, {1, 3}},    {{2, 3, 2}, {3, 1}},
      {{1}, {1, 1, 1}}, {{3, 1, 2}, {4, 1}}, {{2, 1, 2, 1}, {1, 3, 1, 2}}};
  for (const auto& [name, op] : rows) {
    for (const auto& [left, right] : pairs) {
      CAPTURE(name);
      CAPTURE(left.text());
      CAPTURE(right.text());
      OpCase c;
      c.inputs.push_back(away_from_zero(left, 1));
      c.inputs.push_back(away_from_zero(right, 2));
      c.build = build_of(op);
      gradcheck(c);
    }
  }
}

TEST_CASE("elementwise gradients: select passes each element to the operand it came from") {
  for (const auto& [a, b] :
       {std::pair<Shape, Shape>{{2, 3}, {2, 3}}, {{3}, {}}, {{2, 1}, {1, 3}}}) {
    CAPTURE(a.text());
    CAPTURE(b.text());
    OpCase c;
    c.inputs.push_back(Tensor::of<std::uint8_t>({2, 3}, {0, 1, 1, 0, 0, 1}));
    c.inputs.push_back(random_normal(a, 4));
    c.inputs.push_back(random_normal(b, 5));
    c.build = [](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::select(g, v[0], v[1], v[2])};
    };
    gradcheck(c);
  }
}

// Gradients of the sum of op(a, b).
Results gradients_of_sum(Binary op, Tensor a, Tensor b) {
  OpCase c;
  c.inputs.push_back(std::move(a));
  c.inputs.push_back(std::move(b));
  c.gradients = false;
  c.build = [op](Graph& g, const std::vector<Value>& v) {
    return gradient(g, ops::sum(g, op(g, v[0], v[1])), v);
  };
  return run_reference(c);
}

TEST_CASE("elementwise gradients: a tie gives everything to the first operand") {
  for (Binary op : {ops::maximum, ops::minimum}) {
    const Results d = gradients_of_sum(op, f64({2}, {1, 2}), f64({2}, {1, 2}));
    check_close(d.at("y0"), f64({2}, {1, 1}));
    check_close(d.at("y1"), f64({2}, {0, 0}));
  }
}

TEST_CASE("elementwise gradients: relu and abs have slope 0 at 0") {
  for (Unary op : {ops::relu, ops::abs}) {
    OpCase c;
    c.inputs.push_back(f64({3}, {-2, 0, 2}));
    c.build = [op](Graph& g, const std::vector<Value>& v) {
      return gradient(g, ops::sum(g, op(g, v[0])), v);
    };
    c.gradients = false;
    const Tensor expected = op == ops::relu ? f64({3}, {0, 0, 1}) : f64({3}, {-1, 0, 1});
    check_close(run_reference(c).at("y0"), expected);
  }
}

TEST_CASE("elementwise gradients: both uses of one value count") {
  const Results d = gradients_of_sum(
      [](Graph& g, Value a, Value b) { return ops::add(g, ops::mul(g, a, a), ops::mul(g, a, b)); },
      f64({2}, {3, -1}), f64({2}, {10, 20}));
  check_close(d.at("y0"), f64({2}, {16, 18}));  // 2a + b
  check_close(d.at("y1"), f64({2}, {3, -1}));
}

TEST_CASE("elementwise gradients: nothing passes an integer, a comparison or a condition") {
  OpCase c;
  c.inputs.push_back(f64({2}, {1.75, -2.5}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value rounded = ops::cast(g, ops::cast(g, v[0], DType::kI32), DType::kF64);
    const Value sign = ops::select(g, ops::less(g, v[0], rounded), rounded, rounded);
    return gradient(g, ops::sum(g, ops::scale(g, sign, 2.5)), v);
  };
  check_close(run_reference(c).at("y0"), f64({2}, {0, 0}));
}

TEST_CASE("elementwise gradients: a backward node refuses to be differentiated again") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2}});
  const Value dx = gradient(g, ops::sum(g, ops::tanh(g, x)), std::vector{x})[0];
  check_refused([&] { gradient(g, ops::sum(g, dx), std::vector{x}); },
                "[tanh_backward] has no backward", "stop the gradient before it");
}

}  // namespace
}  // namespace keel::test

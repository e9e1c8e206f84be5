// Element-wise ops: values, broadcasting, edge cases and refusals.
#include "src/ops/elementwise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/checks.h"

namespace keel::test {
namespace {

using Unary = Value (*)(Graph&, Value);
using Binary = Value (*)(Graph&, Value, Value);

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

OpCase unary_case(Unary op, Tensor x) {
  OpCase c;
  c.inputs.push_back(std::move(x));
  c.build = [op](Graph& g, const std::vector<Value>& v) { return std::vector{op(g, v[0])}; };
  c.gradients = false;
  return c;
}

// Element e of a tensor of shape `to` read from `from`, which is stretched to it: places are
// counted from the last axis back.
double stretched_at(const Tensor& from, const Shape& to, std::int64_t e) {
  std::int64_t offset = 0, stride = 1;
  for (int back = 1; back <= to.rank(); ++back) {
    const std::int64_t place = e % to[-back];
    e /= to[-back];
    if (back > from.shape().rank()) continue;
    offset += from.shape()[-back] == 1 ? 0 : place * stride;
    stride *= from.shape()[-back];
  }
  return from.at(offset);
}

struct UnaryRow {
  const char* name;
  Unary op;
  double x, expected;
};

const UnaryRow kUnaryRows[] = {
    {"neg", ops::neg, 2.5, -2.5},
    {"square", ops::square, -3, 9},
    {"sqrt", ops::sqrt, 6.25, 2.5},
    {"sqrt of a negative", ops::sqrt, -1, kNan},
    {"exp", ops::exp, 1, 2.718281828459045},
    {"log", ops::log, 10, 2.302585092994046},
    {"log of 0", ops::log, 0, -kInf},
    {"abs", ops::abs, -4, 4},
    {"relu", ops::relu, 3, 3},
    {"relu of a negative", ops::relu, -3, 0},
    {"relu of NaN", ops::relu, kNan, kNan},
    {"tanh", ops::tanh, 0.5, 0.46211715726000975},
    {"tanh, large", ops::tanh, 1000, 1},
    {"sigmoid", ops::sigmoid, 0, 0.5},
    {"sigmoid, very negative", ops::sigmoid, -1000, 0},
    {"gelu", ops::gelu, 1, 0.8413447460685429},  // Phi(1)
    {"gelu, negative", ops::gelu, -2, -0.04550026389635842},
    {"softplus", ops::softplus, 0, 0.6931471805599453},
    {"softplus, large", ops::softplus, 800, 800},
    {"softplus, very negative", ops::softplus, -800, 0},
};

TEST_CASE("elementwise: one operand against values computed by hand") {
  for (const UnaryRow& row : kUnaryRows) {
    CAPTURE(row.name);
    const Results results = run_reference(unary_case(row.op, f64({1}, {row.x})));
    check_close(results.at("y0"), f64({1}, {row.expected}), 1e-15);
  }
}

struct BinaryRow {
  const char* name;
  Binary op;
  double (*formula)(double, double);
};

const BinaryRow kBinaryRows[] = {
    {"add", ops::add, [](double a, double b) { return a + b; }},
    {"sub", ops::sub, [](double a, double b) { return a - b; }},
    {"mul", ops::mul, [](double a, double b) { return a * b; }},
    {"div", ops::div, [](double a, double b) { return a / b; }},
    {"maximum", ops::maximum, [](double a, double b) { return a < b ? b : a; }},
    {"minimum", ops::minimum, [](double a, double b) { return b < a ? b : a; }},
    {"less", ops::less, [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"equal", ops::equal, [](double a, double b) { return a == b ? 1.0 : 0.0; }},
};

const std::pair<Shape, Shape> kShapePairs[] = {
    {{}, {}},           {{3}, {}},           {{}, {2, 3}},
    {{2, 3}, {3}},      {{2, 1}, {1, 3}},    {{2, 3, 4}, {3, 1}},
    {{1}, {1, 1, 1}},   {{5, 1, 2}, {4, 1}}, {{2, 1, 2, 1}, {1, 3, 1, 2}},
    {{2, 0, 3}, {1, 3}}};

TEST_CASE("elementwise: two operands broadcast as NumPy does") {
  for (const BinaryRow& row : kBinaryRows) {
    for (const auto& [left, right] : kShapePairs) {
      CAPTURE(row.name);
      CAPTURE(left.text());
      CAPTURE(right.text());
      const Tensor a = random_normal(left, 1), b = random_normal(right, 2);
      OpCase c;
      c.inputs.push_back(a.clone());
      c.inputs.push_back(b.clone());
      c.build = [&](Graph& g, const std::vector<Value>& v) {
        return std::vector{row.op(g, v[0], v[1])};
      };
      c.gradients = false;
      const Shape shape = broadcast(left, right);
      if (shape.elements() == 0) {
        Graph g;
        const Value y =
            row.op(g, g.input("a", {DType::kF64, left}), g.input("b", {DType::kF64, right}));
        CHECK(g.shape(y) == shape);
        continue;
      }
      Tensor expected(DType::kF64, shape);
      for (std::int64_t e = 0; e < shape.elements(); ++e) {
        expected.as<double>()[std::size_t(e)] =
            row.formula(stretched_at(a, shape, e), stretched_at(b, shape, e));
      }
      check_close(run_reference(c).at("y0"), expected, 0);
    }
  }
}

TEST_CASE("elementwise: a NaN operand wins maximum and minimum, whichever it is") {
  for (Binary op : {ops::maximum, ops::minimum}) {
    OpCase c;
    c.inputs.push_back(f64({2}, {kNan, 1}));
    c.inputs.push_back(f64({2}, {1, kNan}));
    c.build = [op](Graph& g, const std::vector<Value>& v) {
      return std::vector{op(g, v[0], v[1])};
    };
    c.gradients = false;
    check_close(run_reference(c).at("y0"), f64({2}, {kNan, kNan}));
  }
}

TEST_CASE("elementwise: select takes a where the condition is not 0, and stretches all three") {
  OpCase c;
  c.inputs.push_back(Tensor::of<std::uint8_t>({2, 1}, {0, 2}));
  c.inputs.push_back(f64({3}, {1, 2, 3}));
  c.inputs.push_back(f64({}, {-1}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::select(g, v[0], v[1], v[2])};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2, 3}, {-1, -1, -1, 1, 2, 3}));
}

TEST_CASE("elementwise: comparisons are u8, scale is factor x + offset") {
  OpCase c;
  c.inputs.push_back(f64({3}, {1, 2, 3}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value two = g.constant(2.0, DType::kF64);
    return std::vector{ops::less(g, v[0], two), ops::equal(g, v[0], two),
                       ops::scale(g, v[0], 2, -1)};
  };
  const Results results = run_reference(c);
  CHECK(results.at("y0").dtype() == DType::kU8);
  check_close(results.at("y0"), f64({3}, {1, 0, 0}));
  check_close(results.at("y1"), f64({3}, {0, 1, 0}));
  check_close(results.at("y2"), f64({3}, {1, 3, 5}));
}

TEST_CASE("elementwise: cast truncates towards 0 and reaches every type") {
  OpCase c;
  c.inputs.push_back(f64({4}, {2.9, -2.9, 0, 200}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value whole = ops::cast(g, v[0], DType::kI32);
    return std::vector{whole, ops::cast(g, ops::abs(g, v[0]), DType::kU8),
                       ops::cast(g, whole, DType::kF64)};
  };
  c.gradients = false;
  const Results results = run_reference(c);
  CHECK(results.at("y0").dtype() == DType::kI32);
  CHECK(results.at("y1").dtype() == DType::kU8);
  check_close(results.at("y0"), f64({4}, {2, -2, 0, 200}));
  check_close(results.at("y1"), f64({4}, {2, 2, 0, 200}));
  check_close(results.at("y2"), f64({4}, {2, -2, 0, 200}));
}

TEST_CASE("elementwise: refusals") {
  const TensorType a{DType::kF32, {2, 3}}, b{DType::kF32, {4}}, i{DType::kI32, {2, 3}},
      d{DType::kF64, {2, 3}};
  const auto binary = [](Binary op) -> Build {
    return [op](Graph& g, const std::vector<Value>& v) { return std::vector{op(g, v[0], v[1])}; };
  };
  check_op_refused({a, b}, binary(ops::add), "add", "cannot broadcast (2, 3) with (4)");
  check_op_refused({i, i}, binary(ops::mul), "mul", "expected a floating type, got i32");
  check_op_refused({a, d}, binary(ops::less), "less", "expected f32, got f64");
  check_op_refused(
      {a},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::elementwise(g, EwCode::kAdd, {v[0]})};
      },
      "add", "operands: expected 2, got 1");
  check_op_refused(
      {a},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::select(g, v[0], v[0], v[0])};
      },
      "select", "condition: expected u8, got f32");
  check_op_refused(
      {a},
      [](Graph& g, const std::vector<Value>& v) { return std::vector{ops::add(g, v[0], Value{})}; },
      "add", "input 1: expected a value, got none");
}

TEST_CASE("elementwise: a fused program runs its steps in order and prints them") {
  const EwProgram program{2,
                          {{EwCode::kSub, {0, 1, -1}, {}},
                           {EwCode::kScale, {2, -1, -1}, {2, 1}},
                           {EwCode::kMul, {3, 0, -1}, {}}}};
  CHECK(attr_text(program) == "r2=sub(r0,r1) r3=scale(r2,factor=2 offset=1) r4=mul(r3,r0)");
  Graph g;
  const Value a = g.input("a", {DType::kF64, {2, 2}}), b = g.input("b", {DType::kF64, {2}});
  g.mark_output("y", g.add(kFusedElementwise, {a, b}, FusedAttrs{program}));
  OpCase c;
  c.inputs.push_back(f64({2, 2}, {1, 2, 3, 4}));
  c.inputs.push_back(f64({2}, {10, 20}));
  c.build = [&](Graph& graph, const std::vector<Value>& v) {
    return std::vector{graph.add(kFusedElementwise, v, FusedAttrs{program})};
  };
  c.gradients = false;
  // (2 (a - b) + 1) a
  check_close(run_reference(c).at("y0"), f64({2, 2}, {-17, -70, -39, -124}));
}

}  // namespace
}  // namespace keel::test

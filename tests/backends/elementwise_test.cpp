// Element-wise ops against the reference backend: stretched operands and casts.
#include "src/ops/elementwise.h"

#include "src/ops/reduce.h"
#include "tests/backends/kernel_checks.h"

namespace keel::test {
namespace {

// Pairs that stretch along outer, middle and inner axes, rows shorter and longer than a tile.
const std::vector<std::vector<Shape>> kPairs = {
    {{5, 7}, {}},
    {{}, {5, 7}},
    {{3, 200}, {200}},
    {{3, 1000}, {1, 1000}},
    {{200, 3}, {200, 1}},
    {{3, 2000}, {3, 1}},
    {{2, 5, 1}, {1, 5, 33}},
    {{4, 1, 3}, {1, 5, 1}},
    {{2, 3, 1, 130}, {3, 4, 1}},
    {{2, 1, 3, 1, 2}, {1, 2, 1, 3, 2}},
    {{2, 64, 7, 7}, {64, 1, 1}},
    {{1, 1, 1}, {1}},
    {{1, 70000}, {1, 1}},
    {{300, 100}, {100}},
    {{0, 3}, {3}},
};

TEST_CASE("backend elementwise: operands are stretched") {
  for (const auto& shapes : kPairs) {
    CAPTURE(shapes[0].text());
    CAPTURE(shapes[1].text());
    OpCase c = random_case(shapes, [](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::sub(g, v[0], v[1]), ops::maximum(g, v[0], v[1])};
    });
    c.gradients = false;
    check_agrees(c);
  }
}

TEST_CASE("backend elementwise: a stretched condition selects") {
  OpCase c =
      random_case({{40, 1}, {1, 300}, {40, 300}, {300}}, [](Graph& g, const std::vector<Value>& v) {
        const Value column = ops::less(g, v[0], g.constant(0.0));
        const Value row = ops::less(g, v[1], g.constant(0.0));
        return std::vector{ops::select(g, column, v[2], v[3]), ops::select(g, row, v[2], v[3])};
      });
  c.gradients = false;
  check_agrees(c);
}

TEST_CASE("backend: a tensor is stretched to a shape") {
  const std::vector<std::pair<Shape, Shape>> rows = {
      {{}, {3, 5}},   {{5}, {3, 5}},        {{3, 1}, {3, 5}}, {{2, 1, 3, 1}, {2, 4, 3, 300}},
      {{1}, {70000}}, {{7, 1}, {7, 20000}}, {{3}, {2, 2, 3}}};
  for (const auto& [from, to] : rows) {
    CAPTURE(from.text());
    CAPTURE(to.text());
    OpCase c = random_case({from}, [&to](Graph& g, const std::vector<Value>& v) {
      const Value negative = ops::less(g, v[0], g.constant(0.0));
      return std::vector{ops::broadcast_to(g, v[0], to), ops::broadcast_to(g, negative, to)};
    });
    c.gradients = false;
    check_agrees(c);
  }
}

TEST_CASE("backend elementwise: casts from every type to every other") {
  const DType types[] = {DType::kF32, DType::kU8, DType::kI32};
  for (const DType from : types) {
    OpCase c;
    Tensor x(DType::kF64, {37});
    for (std::int64_t i = 0; i < 37; ++i) x.as<double>()[std::size_t(i)] = double(i * 7);
    if (from == DType::kF32) x.as<double>()[1] = 7.75;
    c.inputs.push_back(from == DType::kF32 ? x.clone() : x.to(from));
    c.build = [&](Graph& g, const std::vector<Value>& v) {
      std::vector<Value> casts;
      for (const DType to : types) casts.push_back(ops::cast(g, v[0], to));
      return casts;
    };
    c.gradients = false;
    check_agrees(c);
  }
}

}  // namespace
}  // namespace keel::test

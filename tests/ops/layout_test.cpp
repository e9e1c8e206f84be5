// Ops that only move elements.
#include "src/ops/layout.h"

#include <doctest/doctest.h>

#include "src/ops/elementwise.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

// 0, 1, 2, ... so that every element says where it came from.
Tensor counting(const Shape& shape) {
  Tensor t(DType::kF64, shape);
  double next = 0;
  for (double& x : t.as<double>()) x = next++;
  return t;
}

struct LayoutRow {
  const char* name;
  Shape x;
  std::function<Value(Graph&, Value)> op;
  Tensor y;  // of counting(x)
};

std::vector<LayoutRow> layout_rows() {
  std::vector<LayoutRow> r;
  r.push_back({"reshape",
               {2, 3},
               [](auto& g, Value x) {
                 return ops::reshape(g, x, {3, 1, 2});
               },
               counting({3, 1, 2})});
  r.push_back({"reshape to a scalar",
               {1, 1},
               [](auto& g, Value x) { return ops::reshape(g, x, {}); },
               counting({})});
  r.push_back({"transpose",
               {2, 3},
               [](auto& g, Value x) {
                 return ops::transpose(g, x, {1, 0});
               },
               f64({3, 2}, {0, 3, 1, 4, 2, 5})});
  // y axis i is x axis axes[i]; a rotation is not its own inverse.
  r.push_back({"rotate",
               {2, 1, 3},
               [](auto& g, Value x) {
                 return ops::transpose(g, x, {2, 0, 1});
               },
               f64({3, 2, 1}, {0, 3, 1, 4, 2, 5})});
  r.push_back({"transpose of a scalar",
               {},
               [](auto& g, Value x) { return ops::transpose(g, x, {}); },
               f64({}, {0})});
  r.push_back({"slice",
               {3, 4},
               [](auto& g, Value x) {
                 return ops::slice(g, x, {1, 1}, {2, 2});
               },
               f64({2, 2}, {5, 6, 9, 10})});
  r.push_back({"slice_axis from the end",
               {2, 3},
               [](auto& g, Value x) { return ops::slice_axis(g, x, -1, 2, 1); },
               f64({2, 1}, {2, 5})});
  r.push_back({"pad",
               {2, 2},
               [](auto& g, Value x) {
                 return ops::pad(g, x, {1, 0}, {0, 2}, -9);
               },
               f64({3, 4}, {-9, -9, -9, -9, 0, 1, -9, -9, 2, 3, -9, -9})});
  r.push_back({"concat with itself",
               {1, 2},
               [](auto& g, Value x) {
                 return ops::concat(g, {x, x}, 0);
               },
               f64({2, 2}, {0, 1, 0, 1})});
  return r;
}

// Parts along the first axis, and what joins them.
std::vector<LayoutRow> part_rows() {
  std::vector<LayoutRow> r;
  r.push_back({"split, the second part",
               {4, 2},
               [](auto& g, Value x) { return ops::split(g, x, 2)[1]; },
               f64({2, 2}, {4, 5, 6, 7})});
  r.push_back({"split into parts that stay where they lie, in another order",
               {3, 8},
               [](auto& g, Value x) {
                 const auto parts = ops::split(g, x, 3);
                 return ops::concat(g, {parts[2], parts[0]}, 1);
               },
               f64({1, 16}, {16, 17, 18, 19, 20, 21, 22, 23, 0, 1, 2, 3, 4, 5, 6, 7})});
  r.push_back({"parts joined along the first axis",
               {2, 2},
               [](auto& g, Value x) {
                 return ops::concat(g, {x, ops::scale(g, x, 2), x}, 0);
               },
               f64({6, 2}, {0, 1, 2, 3, 0, 2, 4, 6, 0, 1, 2, 3})});
  return r;
}

void check_rows(const std::vector<LayoutRow>& rows) {
  for (const LayoutRow& row : rows) {
    CAPTURE(row.name);
    OpCase c;
    c.inputs.push_back(counting(row.x));
    c.build = [&](Graph& g, const std::vector<Value>& v) { return std::vector{row.op(g, v[0])}; };
    check_close(run_reference(c).at("y0"), row.y, 0);
    c.inputs[0] = random_normal(row.x, 1);
    gradcheck(c);
  }
}

TEST_CASE("layout: values and gradients") {
  check_rows(layout_rows());
  check_rows(part_rows());
}

TEST_CASE("concat: parts of different sizes along every axis") {
  for (int axis : {0, 1, -1}) {
    CAPTURE(axis);
    const Shape base{2, 2, 2};
    OpCase c;
    for (std::int64_t size : {1, 3, 2}) c.inputs.push_back(counting(base.with(axis, size)));
    c.build = [axis](Graph& g, const std::vector<Value>& v) {
      const Value all = ops::concat(g, v, axis);
      return std::vector{all, ops::slice_axis(g, all, axis, 0, 1),
                         ops::slice_axis(g, all, axis, 1, 3), ops::slice_axis(g, all, axis, 4, 2)};
    };
    const Results results = run_reference(c);
    CHECK(results.at("y0").shape() == base.with(axis, 6));
    for (std::size_t i = 0; i < 3; ++i) {
      check_close(results.at(fmt::format("y{}", i + 1)), c.inputs[i], 0);
    }
    gradcheck(c);
  }
  OpCase c;
  c.inputs.push_back(f64({2, 1}, {1, 2}));
  c.inputs.push_back(f64({2, 2}, {3, 4, 5, 6}));
  c.build = [](Graph& g, const std::vector<Value>& v) { return std::vector{ops::concat(g, v, 1)}; };
  check_close(run_reference(c).at("y0"), f64({2, 3}, {1, 3, 4, 2, 5, 6}), 0);
}

TEST_CASE("layout: integers move too") {
  OpCase c;
  c.inputs.push_back(i32({2, 2}, {1, -2, 3, -4}));
  c.inputs.push_back(Tensor::of<std::uint8_t>({2}, {200, 255}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::transpose(g, v[0], {1, 0}), ops::pad(g, v[1], {1}, {1}, 3),
                       ops::concat(g, {v[0], v[0]}, 1), ops::slice(g, v[1], {1}, {1})};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), i32({2, 2}, {1, 3, -2, -4}), 0);
  check_close(results.at("y1"), f64({4}, {3, 200, 255, 3}), 0);
  check_close(results.at("y2"), i32({2, 4}, {1, -2, 1, -2, 3, -4, 3, -4}), 0);
  check_close(results.at("y3"), f64({1}, {255}), 0);
}

TEST_CASE("layout: an empty slice is a part, and a reshape to the same shape is no node") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 3}});
  CHECK(g.shape(ops::slice(g, x, {2, 0}, {0, 3})) == Shape{0, 3});
  CHECK(ops::reshape(g, x, {2, 3}) == x);
}

TEST_CASE("layout: refusals") {
  const TensorType x{DType::kF32, {2, 3}};
  struct Refusal {
    const char *op, *part;
    std::function<Value(Graph&, Value)> build;
  };
  const Refusal refusals[] = {
      {"reshape", "x: expected 5 elements for (5), got (2, 3)",
       [](auto& g, Value v) { return ops::reshape(g, v, {5}); }},
      {"transpose", "axes: expected each axis of (2, 3) once, got [0,0]",
       [](auto& g, Value v) {
         return ops::transpose(g, v, {0, 0});
       }},
      {"transpose", "got [0]", [](auto& g, Value v) { return ops::transpose(g, v, {0}); }},
      {"transpose", "got [0,2]",
       [](auto& g, Value v) {
         return ops::transpose(g, v, {0, 2});
       }},
      {"slice", "range: expected a part of (2, 3)",
       [](auto& g, Value v) {
         return ops::slice(g, v, {0, 2}, {1, 2});
       }},
      {"slice", "range",
       [](auto& g, Value v) {
         return ops::slice(g, v, {-1, 0}, {1, 1});
       }},
      {"slice", "range", [](auto& g, Value v) { return ops::slice(g, v, {0}, {1}); }},
      {"slice", "range",
       [](auto& g, Value v) {
         return ops::slice(g, v, {1, 1}, {1, INT64_MAX});
       }},
      {"split", "parts: expected a divisor of the first axis of (2, 3), got 3",
       [](auto& g, Value v) { return ops::split(g, v, 3)[0]; }},
      {"split", "got 0", [](auto& g, Value v) { return ops::split(g, v, 0)[0]; }},
      {"split", "first axis of ()",
       [](auto& g, Value) { return ops::split(g, g.constant(1.0), 2)[0]; }},
      {"pad", "padding: expected 2 sizes >= 0",
       [](auto& g, Value v) {
         return ops::pad(g, v, {0, -1}, {0, 0});
       }},
      {"pad", "padding", [](auto& g, Value v) { return ops::pad(g, v, {0}, {0}); }},
      {"concat", "parts: expected at least one",
       [](auto& g, Value) { return ops::concat(g, {}, 0); }},
      {"concat", "part: expected (2, 3) except along axis 0, got (3, 2)",
       [](auto& g, Value v) {
         return ops::concat(g, {v, ops::transpose(g, v, {1, 0})}, 0);
       }},
      {"concat", "type of a part: expected f32, got i32",
       [](auto& g, Value v) {
         return ops::concat(g, {v, g.constant(Tensor(DType::kI32, {2, 3}))}, 0);
       }},
  };
  for (const Refusal& r : refusals) {
    check_op_refused(
        {x}, [&](Graph& g, const std::vector<Value>& v) { return std::vector{r.build(g, v[0])}; },
        r.op, r.part);
  }
}

}  // namespace
}  // namespace keel::test

// Reductions and stretching back.
#include "src/ops/reduce.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/autodiff/gradient.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

using Reduce = Value (*)(Graph&, Value, std::vector<std::int64_t>, bool);

const std::pair<const char*, Reduce> kOps[] = {
    {"sum", ops::sum}, {"mean", ops::mean}, {"max", ops::max}};

struct ReduceRow {
  Shape x;
  std::vector<std::int64_t> axes;
  Shape y, kept;
};

const ReduceRow kReduceRows[] = {{{}, {}, {}, {}},
                                 {{4}, {0}, {}, {1}},
                                 {{4}, {}, {}, {1}},
                                 {{2, 3}, {0}, {3}, {1, 3}},
                                 {{2, 3}, {-1}, {2}, {2, 1}},
                                 {{2, 3, 4}, {1}, {2, 4}, {2, 1, 4}},
                                 {{2, 3, 4}, {-1, 0}, {3}, {1, 3, 1}},
                                 {{2, 1, 3}, {1}, {2, 3}, {2, 1, 3}},
                                 {{2, 3, 1, 2}, {0, 1, 2, 3}, {}, {1, 1, 1, 1}}};

OpCase case_of(Reduce op, const ReduceRow& row, bool keep_dims) {
  OpCase c;
  c.inputs.push_back(random_normal(row.x, 1));
  c.build = [=](Graph& g, const std::vector<Value>& v) {
    return std::vector{op(g, v[0], row.axes, keep_dims)};
  };
  return c;
}

bool is_reduced(const ReduceRow& row, int axis) {
  return row.axes.empty() || std::ranges::any_of(row.axes, [&](std::int64_t a) {
           return row.x.resolve_axis(int(a)) == axis;
         });
}

// Collects the elements of x that belong to each element of y, by counting places.
std::vector<std::vector<double>> groups(const ReduceRow& row, const Tensor& x) {
  std::vector<std::vector<double>> result(std::size_t(row.y.elements()));
  for (std::int64_t e = 0; e < x.elements(); ++e) {
    std::int64_t rest = e, place = 0, stride = 1;
    for (int axis = row.x.rank() - 1; axis >= 0; --axis) {
      if (!is_reduced(row, axis)) {
        place += rest % row.x[axis] * stride;
        stride *= row.x[axis];
      }
      rest /= row.x[axis];
    }
    result[std::size_t(place)].push_back(x.at(e));
  }
  return result;
}

double reduced(std::string_view op, const std::vector<double>& group) {
  if (op == "max") return *std::ranges::max_element(group);
  double total = 0;
  for (double x : group) total += x;
  return op == "sum" ? total : total / double(group.size());
}

TEST_CASE("reduce: values, shapes and gradients") {
  for (const auto& [name, op] : kOps) {
    for (const ReduceRow& row : kReduceRows) {
      for (bool keep_dims : {false, true}) {
        CAPTURE(name);
        CAPTURE(row.x.text());
        CAPTURE(attr_text(row.axes));
        CAPTURE(keep_dims);
        OpCase c = case_of(op, row, keep_dims);
        gradcheck(c);
        c.gradients = false;
        Tensor expected(DType::kF64, keep_dims ? row.kept : row.y);
        const auto all = groups(row, c.inputs[0]);
        for (std::size_t i = 0; i < all.size(); ++i) {
          expected.as<double>()[i] = reduced(name, all[i]);
        }
        check_close(run_reference(c).at("y0"), expected, 1e-15);
      }
    }
  }
}

TEST_CASE("reduce: a sum over no elements is 0, a mean or max over none is refused") {
  OpCase c;
  c.inputs.push_back(Tensor(DType::kF64, {0, 3}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::sum(g, v[0], {0})};
  };
  check_close(run_reference(c).at("y0"), f64({3}, {0, 0, 0}));
  for (Reduce op : {ops::mean, ops::max}) {
    check_op_refused(
        {{DType::kF32, {0, 3}}},
        [op](Graph& g, const std::vector<Value>& v) {
          return std::vector{op(g, v[0], {0}, false)};
        },
        op == ops::mean ? "mean" : "max", "x: expected elements to reduce, got (0, 3)");
  }
}

TEST_CASE("reduce: a tie of max gives the gradient to the first; NaN is the largest") {
  OpCase c;
  c.inputs.push_back(f64({2, 3}, {1, 5, 5, -2, -2, -2}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return gradient(g, ops::sum(g, ops::max(g, v[0], {1})), v);
  };
  check_close(run_reference(c).at("y0"), f64({2, 3}, {0, 1, 0, 1, 0, 0}));
  c.inputs[0] = f64({2, 3}, {1, std::nan(""), 5, -std::numeric_limits<double>::infinity(), -3, -4});
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::max(g, v[0], {1})};
  };
  check_close(run_reference(c).at("y0"), f64({2}, {std::nan(""), -3}));
}

TEST_CASE("broadcast_to: stretches sizes of 1 and new leading axes; the gradient adds them up") {
  struct Stretch {
    Shape from, to;
  };
  const Stretch rows[] = {{{}, {2, 2}}, {{3}, {2, 3}}, {{2, 1}, {2, 3}}, {{1, 2, 1}, {3, 2, 2}}};
  for (const auto& [from, to] : rows) {
    CAPTURE(from.text());
    CAPTURE(to.text());
    OpCase c;
    c.inputs.push_back(random_normal(from, 1));
    c.build = [to = to](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::broadcast_to(g, v[0], to)};
    };
    gradcheck(c);
  }
  OpCase c;
  c.inputs.push_back(f64({2, 1}, {1, 2}));
  c.inputs.push_back(i32({2}, {7, 8}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::broadcast_to(g, v[0], {2, 2, 2}), ops::broadcast_to(g, v[1], {2, 2})};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2}));
  check_close(results.at("y1"), f64({2, 2}, {7, 8, 7, 8}));
}

TEST_CASE("sum_to: undoes a stretch") {
  OpCase c;
  c.inputs.push_back(f64({2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::sum_to(g, v[0], {}), ops::sum_to(g, v[0], {3}),
                       ops::sum_to(g, v[0], {2, 1}), ops::sum_to(g, v[0], {1, 2, 3}),
                       ops::sum_to(g, v[0], {2, 2, 3})};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({}, {78}));
  check_close(results.at("y1"), f64({3}, {22, 26, 30}));
  check_close(results.at("y2"), f64({2, 1}, {30, 48}));
  check_close(results.at("y3"), f64({1, 2, 3}, {8, 10, 12, 14, 16, 18}));
  check_close(results.at("y4"), c.inputs[0]);
}

TEST_CASE("reduce: refusals") {
  const auto reduce = [](std::vector<std::int64_t> axes) -> Build {
    return
        [=](Graph& g, const std::vector<Value>& v) { return std::vector{ops::sum(g, v[0], axes)}; };
  };
  const TensorType x{DType::kF32, {2, 3}};
  check_op_refused({x}, reduce({1, -1}), "sum",
                   "axes: expected distinct axes of (2, 3), got [1,1]");
  check_op_refused({x}, reduce({2}), "sum", "axes: expected distinct axes of (2, 3), got [2]");
  check_op_refused({x}, reduce({-3}), "sum", "axes: expected distinct axes of (2, 3), got [-1]");
  check_op_refused({{DType::kI32, {2}}}, reduce({}), "sum", "x: expected a floating type, got i32");
  check_op_refused(
      {x},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::broadcast_to(g, v[0], {3})};
      },
      "broadcast_to", "x: expected a shape that stretches to (3), got (2, 3)");
  Graph g;
  const Value v = g.input("v", x);
  check_refused(
      [&] {
        ops::broadcast_to(g, v, {4, 3});
      },
      "", "cannot broadcast (2, 3) with (4, 3)");
}

}  // namespace
}  // namespace keel::test

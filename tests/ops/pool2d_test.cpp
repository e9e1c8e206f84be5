// 2-D pooling.
#include "src/ops/pool2d.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/autodiff/gradient.h"
#include "src/ops/layout.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

struct PoolRow {
  Shape x;
  std::int64_t window, stride;
};

// Windows that touch, overlap, leave gaps, leave a border out, and cover the whole image.
const PoolRow kPoolRows[] = {{{1, 1, 4, 4}, 2, 2}, {{2, 3, 5, 4}, 2, 1},   {{1, 2, 7, 7}, 3, 2},
                             {{2, 1, 6, 5}, 2, 3}, {{1, 1, 5, 5}, 2, 2},   {{2, 2, 3, 3}, 3, 1},
                             {{1, 2, 3, 4}, 1, 1}, {{1, 1, 15, 15}, 15, 1}};

OpCase case_of(const PoolRow& row) {
  OpCase c;
  c.inputs.push_back(random_normal(row.x, 1));
  c.build = [row](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::max_pool2d(g, v[0], row.window, row.stride),
                       ops::avg_pool2d(g, v[0], row.window, row.stride)};
  };
  return c;
}

// The elements of window e of y, in order.
std::vector<double> window_of(const PoolRow& row, const Tensor& x, const Shape& y, std::int64_t e) {
  const std::int64_t j = e % y[3], i = e / y[3] % y[2], plane = e / y[3] / y[2];
  std::vector<double> result;
  for (std::int64_t u = 0; u < row.window; ++u) {
    for (std::int64_t v = 0; v < row.window; ++v) {
      result.push_back(
          x.at((plane * row.x[2] + i * row.stride + u) * row.x[3] + j * row.stride + v));
    }
  }
  return result;
}

TEST_CASE("pool2d: values and gradients over windows and strides") {
  for (const PoolRow& row : kPoolRows) {
    CAPTURE(row.x.text());
    CAPTURE(row.window);
    CAPTURE(row.stride);
    OpCase c = case_of(row);
    gradcheck(c);
    c.gradients = false;
    const Results results = run_reference(c);
    const Shape& y = results.at("y0").shape();
    CHECK(y == Shape{row.x[0], row.x[1], (row.x[2] - row.window) / row.stride + 1,
                     (row.x[3] - row.window) / row.stride + 1});
    for (std::int64_t e = 0; e < y.elements(); ++e) {
      const auto window = window_of(row, c.inputs[0], y, e);
      double total = 0;
      for (double v : window) total += v;
      CHECK(results.at("y0").at(e) == *std::ranges::max_element(window));
      CHECK(results.at("y1").at(e) == doctest::Approx(total / double(window.size())));
    }
  }
}

TEST_CASE("max_pool2d: the place of the largest, the first on ties, and NaN before all") {
  OpCase c;
  const double nan = std::nan("");
  c.inputs.push_back(f64({1, 1, 2, 8}, {1, 2, 5, 5, nan, 9, -1, -2, 3, 4, 5, 5, 9, 9, -3, -1}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value y = ops::max_pool2d(g, v[0], 2, 2);
    return std::vector{y, y.at(1)};
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({1, 1, 1, 4}, {4, 5, nan, -1}));
  CHECK(results.at("y1").dtype() == DType::kU8);
  check_close(results.at("y1"), f64({1, 1, 1, 4}, {3, 0, 0, 0}));
}

TEST_CASE("max_pool2d: an element that several windows choose gets all their gradients") {
  OpCase c;
  c.inputs.push_back(f64({1, 1, 3, 3}, {0, 0, 0, 0, 9, 0, 0, 0, 0}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return gradient(g, ops::sum(g, ops::max_pool2d(g, v[0], 2, 1)), v);
  };
  check_close(run_reference(c).at("y0"), f64({1, 1, 3, 3}, {0, 0, 0, 0, 4, 0, 0, 0, 0}));
}

constexpr auto pixels_last = [](Graph& g, Value v) { return ops::transpose(g, v, {0, 2, 3, 1}); };
constexpr auto pixels_first = [](Graph& g, Value v) { return ops::transpose(g, v, {0, 3, 1, 2}); };

// y, index and avg y, then the gradients from `weights`, with images in either order.
std::vector<Value> all_pools(Graph& g, const std::vector<Value>& v, const PoolRow& row, bool last) {
  const auto in = [&](Value t) { return last ? pixels_last(g, t) : t; };
  const auto out = [&](Value t) { return last ? pixels_first(g, t) : t; };
  const Value x = in(v[0]), dy = in(v[1]);
  const PoolAttrs attrs{row.window, row.stride, last};
  const PoolBackwardAttrs backward{row.window, row.stride, g.shape(x), last};
  const Value max = g.add(kMaxPool2d, {x}, attrs), avg = g.add(kAvgPool2d, {x}, attrs);
  return {out(max), out(max.at(1)), out(avg),
          out(g.add(kMaxPool2dBackward, {dy, max.at(1)}, backward)),
          out(g.add(kAvgPool2dBackward, {dy}, backward))};
}

TEST_CASE("pool2d: images stored channels last give the same bits, forward and backward") {
  for (const PoolRow& row : kPoolRows) {
    CAPTURE(row.x.text());
    CAPTURE(row.window);
    OpCase c = case_of(row);
    c.gradients = false;
    const Tensor y = run_reference(c).at("y0").clone();
    c.inputs.push_back(random_normal(y.shape(), 4));
    c.build = [&](Graph& g, const auto& v) { return all_pools(g, v, row, false); };
    const Results planar = run_reference(c);
    c.build = [&](Graph& g, const auto& v) { return all_pools(g, v, row, true); };
    const Results last = run_reference(c);
    for (const auto& [name, value] : planar) check_close(last.at(name), value, 0);
  }
}

TEST_CASE("pool2d: refusals") {
  const auto pool = [](std::int64_t window, std::int64_t stride) -> Build {
    return [=](Graph& g, const std::vector<Value>& v) {
      return std::vector{ops::max_pool2d(g, v[0], window, stride)};
    };
  };
  const TensorType x{DType::kF32, {1, 1, 20, 5}}, large{DType::kF32, {1, 1, 20, 20}};
  check_op_refused({{DType::kF32, {3, 5, 5}}}, pool(2, 2), "max_pool2d",
                   "x: expected (n, c, h, w)");
  check_op_refused({{DType::kI32, {1, 1, 5, 5}}}, pool(2, 2), "max_pool2d", "a floating type");
  check_op_refused({x}, pool(6, 1), "max_pool2d", "inside the image (1, 1, 20, 5), got 6");
  check_op_refused({x}, pool(0, 1), "max_pool2d", "window: expected 1 to 15");
  check_op_refused({large}, pool(16, 1), "max_pool2d", "window: expected 1 to 15");
  check_op_refused({x}, pool(2, 0), "max_pool2d", "stride: expected >= 1, got 0");
  check_op_refused(
      {x},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{ops::avg_pool2d(g, v[0], 6, 1)};
      },
      "avg_pool2d", "inside the image");
}

}  // namespace
}  // namespace keel::test

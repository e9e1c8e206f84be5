// Convolutions of the onednn backend against the reference backend.
#include "src/ops/conv2d.h"

#include "src/ops/elementwise.h"
#include "tests/backends/onednn/bounds.h"

namespace keel::test {
namespace {

struct Convolution {
  Shape x, weight;
  std::int64_t stride = 1, padding = 0;
  bool bias = true;

  std::string text() const {
    return fmt::format("x={} weight={} stride={} padding={} bias={}", x.text(), weight.text(),
                       stride, padding, bias);
  }
};

OpCase case_of(const Convolution& p) {
  OpCase c;
  c.inputs.push_back(random_f32(p.x, 1));
  c.inputs.push_back(random_f32(p.weight, 2));
  if (p.bias) c.inputs.push_back(random_f32({p.weight[0]}, 3));
  c.build = [p](Graph& g, const std::vector<Value>& v) {
    const Value bias = p.bias ? v[2] : Value{};
    return std::vector{ops::conv2d(g, v[0], v[1], {bias, p.stride, p.padding})};
  };
  return c;
}

// The most products one element of each result adds up.
std::map<std::string, double> bounds_of(const Convolution& p) {
  const Shape &x = p.x, &w = p.weight;
  const std::int64_t places = ((x[2] + 2 * p.padding - w[2]) / p.stride + 1) *
                              ((x[3] + 2 * p.padding - w[3]) / p.stride + 1);
  return {{"y0", sum_bound(w.elements(1, 4))},
          {"d0", sum_bound(w[0] * w[2] * w[3])},
          {"d1", sum_bound(x[0] * places)}};
}

void check_convolution(const Convolution& p) {
  const std::string text = p.text();
  CAPTURE(text);
  check_against_reference(case_of(p), bounds_of(p));
}

TEST_CASE("onednn conv2d: geometries, with gradients") {
  const Convolution rows[] = {
      {{2, 1, 28, 28}, {20, 1, 5, 5}},          {{2, 20, 12, 12}, {50, 20, 5, 5}},
      {{3, 3, 9, 7}, {5, 3, 3, 3}, 1, 1},       {{2, 3, 9, 8}, {4, 3, 3, 3}, 2, 0},
      {{1, 5, 11, 6}, {7, 5, 3, 2}, 3, 1},      {{2, 16, 8, 8}, {32, 16, 1, 1}},
      {{2, 33, 5, 5}, {17, 33, 1, 1}, 2, 0},    {{1, 2, 4, 4}, {3, 2, 4, 4}},
      {{2, 4, 7, 7}, {4, 4, 3, 3}, 1, 4},       {{1, 1, 1, 1}, {1, 1, 1, 1}},
      {{4, 1, 1, 9}, {1, 1, 1, 3}, 1, 0},       {{2, 3, 6, 6}, {8, 3, 2, 2}, 4, 0},
      {{1, 48, 6, 6}, {64, 48, 3, 3}, 1, 1},    {{2, 3, 6, 6}, {8, 3, 3, 3}, 1, 1, false},
      {{5, 7, 3, 3}, {1, 7, 3, 3}, 1, 0, false}};
  for (const Convolution& row : rows) check_convolution(row);
}

TEST_CASE("onednn conv2d: no elements") {
  const Convolution rows[] = {{{0, 3, 6, 6}, {4, 3, 3, 3}},
                              {{2, 3, 6, 6}, {0, 3, 3, 3}},
                              {{2, 0, 6, 6}, {4, 0, 3, 3}},
                              {{2, 0, 6, 6}, {4, 0, 3, 3}, 1, 0, false},
                              {{2, 3, 0, 6}, {4, 3, 3, 3}, 1, 2}};
  for (const Convolution& row : rows) check_convolution(row);
}

TEST_CASE("onednn conv2d: relu after the bias, and a NaN that it keeps") {
  for (const Shape& weight : {Shape{6, 3, 3, 3}, Shape{16, 3, 1, 1}}) {
    OpCase c = case_of({{2, 3, 8, 8}, weight});
    c.gradients = false;
    c.inputs[0].as<double>()[100] = NAN;
    c.build = [](Graph& g, const std::vector<Value>& v) {
      return std::vector{g.add(kConv2d, v, ConvAttrs{.activation = "relu"})};
    };
    check_against_reference(c, {{"y0", sum_bound(27)}});
  }
}

}  // namespace
}  // namespace keel::test

// Convolutions against the reference backend, as written and channels last.
#include "src/ops/conv2d.h"

#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/pool2d.h"
#include "tests/backends/kernel_checks.h"

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

// Passes make the convolutions channels last.
void check_convolution(const Convolution& p) {
  const std::string text = p.text();
  CAPTURE(text);
  OpCase c = case_of(p);
  for (bool optimize : {false, true}) {
    CAPTURE(optimize);
    c.optimize = optimize;
    check_agrees(c);
  }
}

TEST_CASE("backend conv2d: geometries, with gradients" * doctest::test_suite("slow")) {
  const Convolution rows[] = {{{2, 1, 28, 28}, {20, 1, 5, 5}},
                              {{2, 20, 12, 12}, {50, 20, 5, 5}},
                              {{3, 3, 9, 7}, {5, 3, 3, 3}, 1, 1},
                              {{2, 3, 9, 8}, {4, 3, 3, 3}, 2, 0},
                              {{1, 5, 11, 6}, {7, 5, 3, 2}, 3, 1},
                              {{2, 16, 8, 8}, {32, 16, 1, 1}},
                              {{2, 33, 5, 5}, {17, 33, 1, 1}, 2, 0},
                              {{1, 2, 4, 4}, {3, 2, 4, 4}},
                              {{2, 4, 7, 7}, {4, 4, 3, 3}, 1, 4},
                              {{1, 1, 1, 1}, {1, 1, 1, 1}},
                              {{4, 1, 1, 9}, {1, 1, 1, 3}, 1, 0},
                              {{2, 3, 6, 6}, {8, 3, 2, 2}, 4, 0},
                              {{1, 48, 6, 6}, {64, 48, 3, 3}, 1, 1},
                              {{2, 3, 6, 6}, {8, 3, 3, 3}, 1, 1, false},
                              {{5, 7, 3, 3}, {1, 7, 3, 3}, 1, 0, false},
                              {{3, 17, 10, 70}, {18, 17, 3, 3}, 1, 1, false},
                              {{2, 5, 9, 75}, {33, 5, 3, 3}, 2, 1},
                              {{2, 5, 19, 13}, {3, 5, 3, 3}, 1, 1},
                              {{2, 5, 35, 29}, {3, 5, 3, 3}, 2, 1},
                              {{9, 2, 21, 17}, {3, 2, 3, 3}, 2, 0, false},
                              {{530, 1, 4, 4}, {2, 1, 3, 3}, 1, 1, false}};
  for (const Convolution& row : rows) check_convolution(row);
}

// Backends that copy windows out before they multiply cut the images into parts, of 3 and of 2.
TEST_CASE("backend conv2d: windows of tens of megabytes") {
  check_convolution({{5, 64, 32, 32}, {1, 64, 5, 5}, 1, 2});
}

TEST_CASE("backend conv2d: no elements") {
  const Convolution rows[] = {{{0, 3, 6, 6}, {4, 3, 3, 3}},
                              {{2, 3, 6, 6}, {0, 3, 3, 3}},
                              {{2, 0, 6, 6}, {4, 0, 3, 3}},
                              {{2, 0, 6, 6}, {4, 0, 3, 3}, 1, 0, false},
                              {{2, 3, 0, 6}, {4, 3, 3, 3}, 1, 2}};
  for (const Convolution& row : rows) check_convolution(row);
}

TEST_CASE("backend conv2d: relu after the bias, and a NaN that it keeps") {
  for (const Shape& weight : {Shape{6, 3, 3, 3}, Shape{16, 3, 1, 1}}) {
    OpCase c = case_of({{2, 3, 8, 8}, weight});
    c.gradients = false;
    c.inputs[0].as<double>()[100] = NAN;
    c.build = [](Graph& g, const std::vector<Value>& v) {
      return std::vector{g.add(kConv2d, v, ConvAttrs{.activation = Activation::kRelu})};
    };
    for (bool optimize : {false, true}) {
      c.optimize = optimize;
      check_agrees(c);
    }
  }
}

TEST_CASE("backend conv2d: an infinity reaches the gradients of the weights that meet it alone") {
  for (const std::int64_t stride : {1, 2}) {
    for (const std::int64_t padding : {0, 1}) {
      CAPTURE(stride);
      CAPTURE(padding);
      OpCase c = case_of({{1, 2, 5, 7}, {3, 2, 3, 3}, stride, padding, false});
      // The end of the first row, or of the last, which windows below the image would meet.
      c.inputs[0].as<double>()[padding == 0 ? 6 : 34] = INFINITY;
      check_agrees(c);
    }
  }
}

// Two convolutions with ReLU and pooling, and a product; inputs x, w1, b1, w2, b2, w3.
std::vector<Value> network(Graph& g, const std::vector<Value>& v) {
  Value x = ops::relu(g, ops::conv2d(g, v[0], v[1], {.bias = v[2]}));
  x = ops::max_pool2d(g, x, 2, 2);
  x = ops::relu(g, ops::conv2d(g, x, v[3], {.bias = v[4], .padding = 1}));
  x = ops::avg_pool2d(g, x, 2, 2);
  const Shape& s = g.shape(x);
  return {ops::matmul(g, ops::reshape(g, x, {s[0], s.elements(1, 4)}), v[5])};
}

TEST_CASE("backend: a convolutional network, as written and channels last") {
  OpCase c;
  for (const Shape& shape : {Shape{3, 1, 13, 11}, Shape{6, 1, 4, 4}, Shape{6}, Shape{9, 6, 3, 3},
                             Shape{9}, Shape{9 * 2 * 2, 5}}) {
    c.inputs.push_back(random_f32(shape, std::uint32_t(c.inputs.size())));
  }
  c.build = network;
  for (bool optimize : {false, true}) {
    CAPTURE(optimize);
    c.optimize = optimize;
    check_agrees(c);
  }
}

TEST_CASE("backend: optimised programs store images channels last") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 3, 6, 6}}),
              w = g.input("w", {DType::kF32, {4, 3, 3, 3}});
  g.mark_output("y", ops::conv2d(g, x, w));
  const auto made = make_backend(default_backend(), {1});
  Backend& backend = *made;
  if (!backend.prefers_channels_last()) return;
  Variables variables(backend, 1);
  const auto has_last = [](const Graph& graph) {
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.node(i);
      if (node.op == &kConv2d) return node.attrs.as<ConvAttrs>().channels_last;
    }
    return false;
  };
  CHECK(has_last(Program(backend, variables, g).graph()));
  CHECK_FALSE(has_last(Program(backend, variables, g, {.optimize = false, .guard = ""}).graph()));
}

}  // namespace
}  // namespace keel::test

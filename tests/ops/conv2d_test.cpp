// 2-D convolution.
#include "src/ops/conv2d.h"

#include <doctest/doctest.h>

#include "src/ops/layout.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

struct ConvolutionRow {
  std::int64_t n, c, h, w, o, kh, kw, stride, padding;
  bool bias;

  std::string text() const {
    return fmt::format("x=({}, {}, {}, {}) weight=({}, {}, {}, {}) stride={} padding={} bias={}", n,
                       c, h, w, o, c, kh, kw, stride, padding, bias);
  }
};

const ConvolutionRow kConvolutionRows[] = {
    {1, 1, 3, 3, 1, 1, 1, 1, 0, false}, {1, 1, 4, 5, 1, 2, 3, 1, 0, false},
    {2, 3, 4, 4, 2, 3, 3, 1, 1, true},  {2, 2, 5, 4, 3, 3, 3, 2, 1, true},
    {1, 2, 6, 6, 2, 3, 3, 3, 0, false}, {1, 2, 5, 5, 2, 2, 2, 2, 0, true},
    {2, 1, 3, 3, 2, 3, 3, 1, 2, false}, {1, 2, 2, 3, 2, 5, 5, 1, 2, true},
    {1, 1, 4, 4, 1, 1, 1, 2, 0, false}, {2, 2, 3, 3, 3, 3, 3, 1, 0, true}};

OpCase case_of(const ConvolutionRow& row) {
  OpCase c;
  c.inputs.push_back(random_normal({row.n, row.c, row.h, row.w}, 1));
  c.inputs.push_back(random_normal({row.o, row.c, row.kh, row.kw}, 2));
  if (row.bias) c.inputs.push_back(random_normal({row.o}, 3));
  c.build = [row](Graph& g, const std::vector<Value>& v) {
    return std::vector{
        ops::conv2d(g, v[0], v[1], {row.bias ? v[2] : Value{}, row.stride, row.padding})};
  };
  return c;
}

// The element of a (a, b, c, d) tensor, 0 outside of it.
double at(const Tensor& t, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
  const Shape& s = t.shape();
  if (k < 0 || k >= s[2] || l < 0 || l >= s[3]) return 0;
  return t.at(((i * s[1] + j) * s[2] + k) * s[3] + l);
}

// One element of y, straight from its definition.
double convolved(const ConvolutionRow& row, const OpCase& c, std::int64_t e, const Shape& y) {
  const std::int64_t j = e % y[3], i = e / y[3] % y[2], o = e / y[3] / y[2] % y[1],
                     n = e / y[3] / y[2] / y[1];
  double total = row.bias ? c.inputs[2].at(o) : 0;
  for (std::int64_t k = 0; k < row.c * row.kh * row.kw; ++k) {
    const std::int64_t v = k % row.kw, u = k / row.kw % row.kh, channel = k / row.kw / row.kh;
    total += at(c.inputs[0], n, channel, i * row.stride + u - row.padding,
                j * row.stride + v - row.padding) *
             at(c.inputs[1], o, channel, u, v);
  }
  return total;
}

TEST_CASE("conv2d: values and gradients over strides, paddings and windows") {
  for (const ConvolutionRow& row : kConvolutionRows) {
    const std::string text = row.text();
    CAPTURE(text);
    OpCase c = case_of(row);
    c.gradients = false;
    const Tensor y = run_reference(c).at("y0").clone();
    const Shape expected_shape{row.n, row.o, (row.h + 2 * row.padding - row.kh) / row.stride + 1,
                               (row.w + 2 * row.padding - row.kw) / row.stride + 1};
    Tensor expected(DType::kF64, expected_shape);
    for (std::int64_t e = 0; e < expected.elements(); ++e) {
      expected.as<double>()[std::size_t(e)] = convolved(row, c, e, expected_shape);
    }
    check_close(y, expected, 1e-14);
    gradcheck(case_of(row));
  }
}

TEST_CASE("conv2d: a 2 x 2 window by hand, not flipped") {
  OpCase c;
  c.inputs.push_back(f64({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}));
  c.inputs.push_back(f64({1, 1, 2, 2}, {1, 10, 100, 1000}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::conv2d(g, v[0], v[1])};
  };
  check_close(run_reference(c).at("y0"), f64({1, 1, 1, 2}, {5421, 6532}));
}

TEST_CASE("conv2d: a relu that was fused into it") {
  OpCase c;
  c.inputs.push_back(f64({1, 1, 1, 3}, {1, -2, 3}));
  c.inputs.push_back(f64({2, 1, 1, 1}, {1, -1}));
  c.inputs.push_back(f64({2}, {-1, 1}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kConv2d, v, ConvAttrs{.activation = Activation::kRelu})};
  };
  check_close(run_reference(c).at("y0"), f64({1, 2, 1, 3}, {0, 0, 2, 0, 3, 0}));
}

constexpr auto to_last = [](Graph& g, Value v) { return ops::transpose(g, v, {0, 2, 3, 1}); };
constexpr auto to_planes = [](Graph& g, Value v) { return ops::transpose(g, v, {0, 3, 1, 2}); };

// Two graphs of x, weight, dy and bias: the second with its images stored channels last.
std::vector<Value> all_planar(Graph& g, const std::vector<Value>& v, const ConvolutionRow& r) {
  const ConvBackwardAttrs dx{r.stride, r.padding, g.shape(v[0])};
  const ConvBackwardAttrs dw{r.stride, r.padding, g.shape(v[1])};
  return {g.add(kConv2d, {v[0], v[1], v[3]}, ConvAttrs{r.stride, r.padding}),
          g.add(kConv2dBackwardInput, {v[2], v[1]}, dx),
          g.add(kConv2dBackwardWeight, {v[0], v[2]}, dw)};
}
std::vector<Value> all_last(Graph& g, const std::vector<Value>& v, const ConvolutionRow& r) {
  const Value x = to_last(g, v[0]), dy = to_last(g, v[2]);
  const ConvAttrs y{r.stride, r.padding, Activation::kNone, true};
  const ConvBackwardAttrs dx{r.stride, r.padding, g.shape(x), true};
  const ConvBackwardAttrs dw{r.stride, r.padding, g.shape(v[1]), true};
  return {to_planes(g, g.add(kConv2d, {x, v[1], v[3]}, y)),
          to_planes(g, g.add(kConv2dBackwardInput, {dy, v[1]}, dx)),
          g.add(kConv2dBackwardWeight, {x, dy}, dw)};
}

TEST_CASE("conv2d: images stored channels last give the same bits, forward and backward") {
  for (const ConvolutionRow& row : kConvolutionRows) {
    const std::string text = row.text();
    CAPTURE(text);
    OpCase c = case_of(row);
    c.gradients = false;
    const Tensor y = run_reference(c).at("y0").clone();
    c.inputs.resize(2);
    c.inputs.push_back(random_normal(y.shape(), 4));
    c.inputs.push_back(random_normal({row.o}, 3));
    c.build = [&](Graph& g, const auto& v) { return all_planar(g, v, row); };
    const Results planar = run_reference(c);
    c.build = [&](Graph& g, const auto& v) { return all_last(g, v, row); };
    const Results last = run_reference(c);
    for (const auto& [name, value] : planar) check_close(last.at(name), value, 0);
  }
}

TEST_CASE("conv2d: refusals") {
  const auto type = [](Shape s, DType d = DType::kF32) { return TensorType{d, s}; };
  const auto conv = [](std::int64_t stride, std::int64_t padding) -> Build {
    return [=](Graph& g, const std::vector<Value>& v) {
      return std::vector{
          ops::conv2d(g, v[0], v[1], {v.size() > 2 ? v[2] : Value{}, stride, padding})};
    };
  };
  struct Refusal {
    std::vector<TensorType> inputs;
    std::int64_t stride, padding;
    const char* part;
  };
  const TensorType x = type({2, 3, 4, 4}), w = type({5, 3, 3, 3});
  const Refusal refusals[] = {
      {{type({3, 4, 4}), w}, 1, 0, "x: expected (n, c, h, w), got (3, 4, 4)"},
      {{type({2, 3, 4, 4}, DType::kU8), w}, 1, 0, "x: expected a floating type, got u8"},
      {{x, type({5, 3, 3, 3}, DType::kF64)}, 1, 0, "type of weight: expected f32, got f64"},
      {{x, type({5, 2, 3, 3})}, 1, 0, "weight: expected (o, 3, kh, kw), got (5, 2, 3, 3)"},
      {{x, type({5, 3, 3})}, 1, 0, "weight: expected (o, 3, kh, kw)"},
      {{x, type({5, 3, 5, 3})}, 1, 0, "a window inside the padded image (2, 3, 4, 4)"},
      {{x, w}, 0, 0, "stride: expected >= 1, got 0"},
      {{x, w}, 1, -1, "padding: expected >= 0, got -1"},
      {{x, w, type({3})}, 1, 0, "bias: expected (5), got (3)"},
  };
  for (const Refusal& r : refusals) {
    check_op_refused(r.inputs, conv(r.stride, r.padding), "conv2d", r.part);
  }
  check_op_refused(
      {x, w},
      [](Graph& g, const std::vector<Value>& v) {
        return std::vector{
            g.add(kConv2dBackwardInput, {v[0], v[1]}, ConvBackwardAttrs{1, 0, {2, 3, 4, 4}})};
      },
      "conv2d_backward_input", "dy: expected (2, 5, 2, 2), got (2, 3, 4, 4)");
}

}  // namespace
}  // namespace keel::test

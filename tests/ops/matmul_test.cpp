// Matrix products: against three loops, by central differences, and refusals.
#include "src/ops/matmul.h"

#include <doctest/doctest.h>

#include "src/autodiff/gradient.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

struct ProductRow {
  Shape batch;
  std::int64_t m, k, n;
  bool transpose_a, transpose_b, shared_b, bias;

  std::string text() const {
    return fmt::format("batch={} m={} k={} n={} transpose_a={} transpose_b={} shared_b={} bias={}",
                       batch.text(), m, k, n, transpose_a, transpose_b, shared_b, bias);
  }
  Shape stacked(std::int64_t rows, std::int64_t cols) const {
    std::vector<std::int64_t> sizes(batch.sizes().begin(), batch.sizes().end());
    sizes.insert(sizes.end(), {rows, cols});
    return Shape(sizes);
  }
  Shape a() const { return transpose_a ? stacked(k, m) : stacked(m, k); }
  Shape b() const {
    const std::int64_t rows = transpose_b ? n : k, cols = transpose_b ? k : n;
    return shared_b ? Shape{rows, cols} : stacked(rows, cols);
  }
};

// Every combination of flags, on a few batches and sizes.
std::vector<ProductRow> product_rows() {
  std::vector<ProductRow> result;
  for (const Shape& batch : {Shape{}, Shape{3}, Shape{2, 2}}) {
    for (int flags = 0; flags < 16; ++flags) {
      const bool shared = (flags & 4) || batch.rank() == 0;
      result.push_back(
          {batch, 2, 3, 4, (flags & 1) != 0, (flags & 2) != 0, shared, (flags & 8) != 0});
    }
  }
  result.push_back({{}, 1, 1, 1, false, false, true, true});
  result.push_back({{2}, 1, 5, 1, true, false, true, true});
  return result;
}

OpCase case_of(const ProductRow& row) {
  OpCase c;
  c.inputs.push_back(random_normal(row.a(), 1));
  c.inputs.push_back(random_normal(row.b(), 2));
  if (row.bias) c.inputs.push_back(random_normal({row.n}, 3));
  c.build = [row](Graph& g, const std::vector<Value>& v) {
    return std::vector{
        ops::matmul(g, v[0], v[1], {row.bias ? v[2] : Value{}, row.transpose_a, row.transpose_b})};
  };
  return c;
}

Tensor three_loops(const ProductRow& row, const OpCase& c) {
  Tensor y(DType::kF64, row.stacked(row.m, row.n));
  const std::int64_t batches = row.batch.elements();
  for (std::int64_t e = 0; e < y.elements(); ++e) {
    const std::int64_t j = e % row.n, i = e / row.n % row.m, z = e / row.n / row.m;
    REQUIRE(z < batches);
    double total = row.bias ? c.inputs[2].at(j) : 0;
    for (std::int64_t p = 0; p < row.k; ++p) {
      const std::int64_t in_a = row.transpose_a ? p * row.m + i : i * row.k + p;
      const std::int64_t in_b = row.transpose_b ? j * row.k + p : p * row.n + j;
      total += c.inputs[0].at(z * row.m * row.k + in_a) *
               c.inputs[1].at((row.shared_b ? 0 : z * row.k * row.n) + in_b);
    }
    y.as<double>()[std::size_t(e)] = total;
  }
  return y;
}

TEST_CASE("matmul: values and gradients for every combination of flags") {
  for (const ProductRow& row : product_rows()) {
    const std::string text = row.text();
    CAPTURE(text);
    OpCase c = case_of(row);
    c.gradients = false;
    check_close(run_reference(c).at("y0"), three_loops(row, c), 1e-14);
    gradcheck(case_of(row));
  }
}

TEST_CASE("matmul: an inner size of 0 gives the bias") {
  Graph g;
  const Value a = g.input("a", {DType::kF32, {2, 0}}), b = g.input("b", {DType::kF32, {0, 3}});
  CHECK(g.shape(ops::matmul(g, a, b)) == Shape{2, 3});
  OpCase c;
  c.inputs.push_back(Tensor(DType::kF64, {2, 0}));
  c.inputs.push_back(Tensor(DType::kF64, {0, 3}));
  c.inputs.push_back(f64({3}, {1, 2, 3}));
  c.gradients = false;
  c.build = [](Graph& graph, const std::vector<Value>& v) {
    return std::vector{ops::matmul(graph, v[0], v[1], {.bias = v[2]})};
  };
  check_close(run_reference(c).at("y0"), f64({2, 3}, {1, 2, 3, 1, 2, 3}));
}

TEST_CASE("matmul: a relu that was fused into it, and a NaN that it keeps") {
  OpCase c;
  c.inputs.push_back(f64({3, 1}, {1, -1, std::nan("")}));
  c.inputs.push_back(f64({1, 2}, {2, -3}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{
        g.add(kMatmul, {v[0], v[1], Value{}}, MatmulAttrs{.activation = Activation::kRelu})};
  };
  const double nan = std::nan("");
  check_close(run_reference(c).at("y0"), f64({3, 2}, {2, 0, 0, 3, nan, nan}));
}

// y (2, 3) = a (2, 2) b, b (2, 3) in panels of two columns and three rows. What fills them is not
// looked at.
TEST_CASE("matmul: b in panels") {
  OpCase c;
  c.inputs.push_back(f64({2, 2}, {1, 10, 100, 1000}));
  c.inputs.push_back(f64({2, 3, 2}, {1, 2, 4, 5, 77, 77, 3, 77, 6, 77, 77, 77}));
  c.inputs.push_back(f64({3}, {0, 0, -9000}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{g.add(kMatmul, {v[0], v[1], v[2]},
                             MatmulAttrs{.activation = Activation::kRelu, .packed_columns = 3})};
  };
  check_close(run_reference(c).at("y0"), f64({2, 3}, {41, 52, 0, 4100, 5200, 0}));
}

TEST_CASE("matmul: panels that are refused") {
  const auto type = [](Shape s) { return TensorType{DType::kF32, s}; };
  const auto refuse = [&](const Shape& panels, const MatmulAttrs& attrs, const char* part) {
    const Build build = [&](Graph& g, const std::vector<Value>& v) {
      return std::vector{g.add(kMatmul, {v[0], v[1], Value{}}, attrs)};
    };
    check_op_refused({type({2, 5}), type(panels)}, build, "matmul", part);
  };
  const MatmulAttrs nine{.packed_columns = 9};
  const char* expected = "b: expected panels of a matrix (5, 9), got ";
  refuse({2, 5, 4}, nine, expected);
  refuse({4, 5, 4}, nine, expected);
  refuse({3, 4, 4}, nine, expected);
  refuse({9, 5, 0}, nine, expected);
  refuse({9, 0, 1}, nine, expected);
  refuse({5, 9}, nine, expected);
  refuse({3, 5, 4}, {.transpose_b = true, .packed_columns = 9}, "b: expected panels that are not");
}

TEST_CASE("matmul: refusals") {
  const auto type = [](Shape s, DType d = DType::kF32) { return TensorType{d, s}; };
  const Build plain = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::matmul(g, v[0], v[1], {.bias = v.size() > 2 ? v[2] : Value{}})};
  };
  struct Refusal {
    std::vector<TensorType> inputs;
    const char* part;
  };
  const Refusal refusals[] = {
      {{type({2, 3}, DType::kI32), type({3, 4})}, "a: expected a floating type, got i32"},
      {{type({2, 3}), type({3, 4}, DType::kF64)}, "type of b: expected f32, got f64"},
      {{type({3}), type({3, 4})}, "a: expected rank >= 2, got (3)"},
      {{type({2, 3}), type({3})}, "b: expected rank >= 2, got (3)"},
      {{type({2, 3}), type({4, 5})}, "inner size of b: expected 3, got (4, 5)"},
      {{type({2, 2, 3}), type({3, 3, 4})}, "b: expected two axes, or the batch axes of (2, 2, 3)"},
      {{type({2, 3}), type({2, 3, 4})}, "b: expected two axes"},
      {{type({2, 3}), type({3, 4}), type({3})}, "bias: expected (4), got (3)"},
  };
  for (const Refusal& r : refusals) check_op_refused(r.inputs, plain, "matmul", r.part);
}

TEST_CASE("matmul: what passes made of it refuses a gradient instead of a wrong one") {
  Graph g;
  const Value a = g.input("a", {DType::kF32, {2, 2}}), b = g.input("b", {DType::kF32, {1, 2, 2}});
  const auto check_refuses = [&](Value y, const char* part) {
    check_refused([&] { gradient(g, ops::sum(g, y), std::vector{a}); }, "[matmul] ", part);
  };
  check_refuses(g.add(kMatmul, {a, a, Value{}}, MatmulAttrs{.activation = Activation::kRelu}),
                "before activations");
  check_refuses(g.add(kMatmul, {a, b, Value{}}, MatmulAttrs{.packed_columns = 2}), "before b");
}

}  // namespace
}  // namespace keel::test

// Sums of products that become one: which do, which do not, and that values stay.
#include <doctest/doctest.h>

#include <algorithm>

#include "src/autodiff/gradient.h"
#include "src/graph/verify.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "tests/passes/count.h"
#include "tests/passes/fed_graph.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

int additions(const Graph& g) { return count(g, elementwise_op(EwCode::kAdd)); }

Graph merged(const Graph& g) {
  Graph result = merge_matmuls(g);
  verify(result, "merge_matmuls");
  return result;
}

// Values in float64 differ only by the order in which at most `terms` products were added up: each
// order is within terms eps / 2 of the sum of their sizes, which is at most terms times the largest
// product. The numbers here are normal, below 5, so that products are below 25.
void check_same_values(const Graph& before, const Graph& after, const Feeds& feeds, int terms) {
  check_results(before, after, feeds, [&](const Tensor& expected, const Tensor& got) {
    check_close(got, expected, terms * terms * 25 * 2.3e-16);
  });
}

struct Factors : FedGraph {
  // a^T d with `rows` rows each.
  Value product(std::int64_t rows, std::int64_t m = 8, std::int64_t n = 6) {
    return ops::matmul(g, input({rows, m}), input({rows, n}), {.transpose_a = true});
  }
};

TEST_CASE("merge_matmuls: the gradient of a weight that is shared by 16 time steps") {
  Graph g;
  Feeds feeds;
  constexpr int kSteps = 16, kRows = 3, kWidth = 12;
  const TensorType rows{DType::kF64, {kRows, kWidth}}, square{DType::kF64, {kWidth, kWidth}};
  const Value w = g.input("w", square), u = g.input("u", square);
  feeds["w"] = random_normal(square.shape, 100, 0, 0.3);
  feeds["u"] = random_normal(square.shape, 101, 0, 0.3);
  Value h = g.input("h", rows);
  feeds["h"] = random_normal(rows.shape, 102);
  for (int t = 0; t < kSteps; ++t) {
    const std::string name = fmt::format("x{}", t);
    feeds[name] = random_normal(rows.shape, std::uint32_t(t));
    const Value x = g.input(name, rows);
    h = ops::tanh(g, ops::add(g, ops::matmul(g, x, w), ops::matmul(g, h, u)));
  }
  const std::vector<Value> d = gradient(g, ops::sum(g, ops::square(g, h)), std::vector{w, u});
  g.mark_output("dw", d[0]);
  g.mark_output("du", d[1]);
  const Graph before = remove_dead_code(g), after = merged(before);
  // Forward, through time (once less: h at the start needs no gradient), and of w and u.
  CHECK(count(before, kMatmul) == 2 * kSteps + (kSteps - 1) + 2 * kSteps);
  CHECK(count(after, kMatmul) == 2 * kSteps + (kSteps - 1) + 2);
  CHECK(additions(before) - additions(after) == 2 * (kSteps - 1));
  CHECK(count(after, kConcat) == 3);  // of x, of h, and one of what both products are with
  check_same_values(before, after, feeds, kSteps * kRows);
  const Graph again = merged(after);
  CHECK(again.size() == after.size());
}

TEST_CASE("merge_matmuls: from four products on, in any tree of additions") {
  for (int products = 2; products <= 6; ++products) {
    for (const bool is_balanced : {false, true}) {
      CAPTURE(products);
      CAPTURE(is_balanced);
      Factors f;
      std::vector<Value> terms;
      for (int i = 0; i < products; ++i) terms.push_back(f.product(2 + i % 2));
      while (terms.size() > 1) {
        const auto second = is_balanced ? terms.end() - 1 : terms.begin() + 1;
        const Value sum = ops::add(f.g, terms.front(), *second);
        terms.erase(second);
        terms.erase(terms.begin());
        terms.insert(is_balanced ? terms.end() : terms.begin(), sum);
      }
      f.g.mark_output("y", terms[0]);
      const Graph after = merged(f.g);
      CHECK(count(after, kMatmul) == (products < 4 ? products : 1));
      CHECK(additions(after) == (products < 4 ? products - 1 : 0));
      check_same_values(f.g, after, f.feeds, 3 * products);
    }
  }
}

TEST_CASE("merge_matmuls: other terms of the sum are added to the one product") {
  Factors f;
  const Value bias = f.input({8, 6}), late = f.input({8, 6});
  Value sum = ops::add(f.g, bias, f.product(2));
  for (int i = 0; i < 4; ++i) sum = ops::add(f.g, f.product(2), sum);
  sum = ops::add(f.g, ops::matmul(f.g, f.input({8, 2}), f.input({2, 6})), sum);
  f.g.mark_output("y", ops::add(f.g, sum, late));
  const Graph after = merged(f.g);
  CHECK(count(after, kMatmul) == 2);
  CHECK(additions(after) == 3);
  check_same_values(f.g, after, f.feeds, 14);
}

// A sum of four terms, products but for the first, which is what `change` makes.
Graph with_change(const std::function<Value(Factors&)>& change, Feeds& feeds) {
  Factors f;
  Value sum = change(f);
  for (int i = 0; i < 3; ++i) sum = ops::add(f.g, sum, f.product(2));
  f.g.mark_output("y", sum);
  feeds = std::move(f.feeds);
  return std::move(f.g);
}

TEST_CASE("merge_matmuls: what stays out") {
  const std::function<Value(Factors&)> changes[] = {
      // A bias; no transposed factor; both; more than two axes.
      [](Factors& f) {
        return ops::matmul(f.g, f.input({2, 8}), f.input({2, 6}),
                           {.bias = f.input({6}), .transpose_a = true});
      },
      [](Factors& f) {
        return ops::matmul(f.g, f.input({8, 2}), f.input({2, 6}));
      },
      [](Factors& f) {
        return ops::matmul(f.g, f.input({2, 8}), f.input({6, 2}),
                           {.transpose_a = true, .transpose_b = true});
      },
      // Read elsewhere: the product, or a sum on the way.
      [](Factors& f) {
        const Value v = f.product(2);
        f.g.mark_output("seen", v);
        return v;
      },
      [](Factors& f) {
        const Value v = ops::add(f.g, f.product(2), f.product(2));
        f.g.mark_output("seen", v);
        return v;
      },
      // Stretched.
      [](Factors& f) { return ops::add(f.g, f.product(2, 8, 6), f.product(2, 8, 1)); },
      [](Factors& f) { return ops::exp(f.g, f.product(2)); },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    CAPTURE(i);
    Feeds feeds;
    const Graph before = with_change(changes[i], feeds), after = merged(before);
    CHECK(count(after, kMatmul) == count(before, kMatmul));
    CHECK(count(after, kConcat) == 0);
    check_same_values(before, after, feeds, 10);
  }
  // The same with a plain product is merged.
  Feeds feeds;
  const Graph before = with_change([](Factors& f) { return f.product(2); }, feeds);
  CHECK(count(merged(before), kMatmul) == 1);
}

TEST_CASE("merge_matmuls: a sum that nobody needs takes nothing from what is needed") {
  Factors f;
  Value sum = f.product(2);
  for (int i = 0; i < 3; ++i) sum = ops::add(f.g, sum, f.product(2));
  f.g.mark_output("y", ops::neg(f.g, sum));
  ops::add(f.g, sum, f.product(2));
  const Graph after = merged(f.g);
  CHECK(count(after, kMatmul) == 1);
  CHECK(additions(after) == 0);
  check_same_values(f.g, after, f.feeds, 8);
}

TEST_CASE("merge_matmuls: a product of batches stays out") {
  Factors f;
  Value sum;
  for (int i = 0; i < 5; ++i) {
    const Value v = ops::matmul(f.g, f.input({2, 1, 8}), f.input({2, 1, 6}), {.transpose_a = true});
    sum = sum.valid() ? ops::add(f.g, sum, v) : v;
  }
  f.g.mark_output("y", sum);
  CHECK(count(merged(f.g), kMatmul) == 5);
}

TEST_CASE("merge_matmuls: not where joining the factors moves more than it saves") {
  // Five products of r rows: 2 * 5 r (8 + 6) elements are moved, 4 * 4 * 8 * 6 saved.
  for (const auto& [rows, expected] : {std::pair{5, 1}, std::pair{6, 5}}) {
    CAPTURE(rows);
    Factors f;
    Value sum = f.product(rows);
    for (int i = 0; i < 4; ++i) sum = ops::add(f.g, sum, f.product(rows));
    f.g.mark_output("y", sum);
    CHECK(count(merged(f.g), kMatmul) == expected);
  }
}

}  // namespace
}  // namespace keel::test

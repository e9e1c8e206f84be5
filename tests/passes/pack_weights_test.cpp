// Matrices that many products share are cut into panels once: which are, and that values stay.
#include <doctest/doctest.h>

#include <cstring>

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

PackedLayout always(const Graph&, const Node&) { return {.width = 4, .row_multiple = 3}; }

Graph cut(const Graph& g, const ChoosePacking& choose = always) {
  Graph result = pack_weights(g, choose);
  verify(result, "pack_weights");
  return result;
}

int count_readers(const Graph& g) {
  int n = 0;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    n += node.op == &kMatmul && node.attrs.as<MatmulAttrs>().packed_columns > 0;
  }
  return n;
}

// The same matrix is multiplied, so that not a bit may differ.
void check_same_bits(const Graph& before, const Graph& after, const Feeds& feeds) {
  check_results(before, after, feeds, [](const Tensor& expected, const Tensor& got) {
    REQUIRE(got.bytes() == expected.bytes());
    CHECK(std::memcmp(got.data(), expected.data(), std::size_t(expected.bytes())) == 0);
  });
}

struct Products : FedGraph {
  // `count` products of `rows` rows with b.
  void share(Value b, int count, std::int64_t rows, bool transpose_b = false) {
    const std::int64_t k = g.shape(b)[transpose_b ? -1 : -2];
    for (int i = 0; i < count; ++i) {
      const Value y = ops::matmul(g, input({rows, k}), b, {.transpose_b = transpose_b});
      g.mark_output(fmt::format("y{}", feeds.size()), y);
    }
  }
};

TEST_CASE("pack_weights: the weight of a recurrent layer, forward and transposed in the backward") {
  constexpr int kSteps = 16;
  Products p;
  const Value w = p.input({10, 10}), b = p.input({10});
  Value h = p.input({20, 10});
  for (int t = 0; t < kSteps; ++t) {
    h = ops::relu(p.g, ops::matmul(p.g, h, w, {.bias = b}));
  }
  p.g.mark_output("dw", gradient(p.g, ops::sum(p.g, ops::square(p.g, h)), std::vector{w})[0]);
  const Graph before = fuse(p.g), after = cut(before);
  CHECK(count_readers(after) == kSteps + kSteps - 1);  // h at the start needs no gradient
  CHECK(count(after, kPad) == 2);
  CHECK(count(after, kTranspose) == 2);
  CHECK(count(after, kMatmul) == count(before, kMatmul));
  check_same_bits(before, after, p.feeds);
  CHECK(cut(after).size() == after.size());
}

TEST_CASE("pack_weights: any size, with and without filling") {
  for (const std::int64_t k : {1, 3, 16, 17}) {
    for (const std::int64_t n : {1, 4, 15, 32}) {
      for (const PackedLayout form :
           {PackedLayout{1, 1}, PackedLayout{4, 1}, PackedLayout{16, 16}}) {
        for (const bool transposed : {false, true}) {
          CAPTURE(k);
          CAPTURE(n);
          CAPTURE(form.width);
          CAPTURE(transposed);
          Products p;
          p.share(p.input(transposed ? Shape{n, k} : Shape{k, n}), 4, 64, transposed);
          const Graph after = cut(p.g, [&](const Graph&, const Node&) { return form; });
          CHECK(count_readers(after) == 4);
          CHECK(count(after, kPad) == (k % form.row_multiple || n % form.width ? 1 : 0));
          check_same_bits(p.g, after, p.feeds);
        }
      }
    }
  }
}

TEST_CASE("pack_weights: from two products and 256 rows on") {
  struct Row {
    int products;
    std::int64_t rows;
    bool is_cut;
  };
  for (const Row& row : {Row{1, 1000, false}, Row{2, 127, false}, Row{2, 128, true},
                         Row{32, 8, true}, Row{31, 8, false}}) {
    CAPTURE(row.products);
    CAPTURE(row.rows);
    Products p;
    p.share(p.input({5, 6}), row.products, row.rows);
    CHECK(count_readers(cut(p.g)) == (row.is_cut ? row.products : 0));
  }
}

TEST_CASE("pack_weights: each matrix and each way to read it counts for itself") {
  Products p;
  const Value square = p.input({6, 6}), other = p.input({6, 6});
  p.share(square, 4, 100);
  p.share(square, 2, 100, true);
  p.share(other, 2, 100);
  const Graph after = cut(p.g);
  CHECK(count_readers(after) == 4);
  check_same_bits(p.g, after, p.feeds);
}

TEST_CASE("pack_weights: stacks of rows and turned rows share a matrix, no others do") {
  Products p;
  const Value b = p.input({5, 6}), stack = p.input({2, 5, 6}), turned = p.input({7, 6});
  const Value turned_stack = p.input({8, 6});
  for (int i = 0; i < 4; ++i) {
    p.g.mark_output(fmt::format("shared{}", i), ops::matmul(p.g, p.input({2, 50, 5}), b));
    p.g.mark_output(fmt::format("stack{}", i), ops::matmul(p.g, p.input({2, 200, 5}), stack));
    p.g.mark_output(fmt::format("turned{}", i),
                    ops::matmul(p.g, p.input({7, 300}), turned, {.transpose_a = true}));
    p.g.mark_output(fmt::format("turned_stack{}", i),
                    ops::matmul(p.g, p.input({2, 8, 300}), turned_stack, {.transpose_a = true}));
  }
  const Graph after = cut(p.g);
  CHECK(count_readers(after) == 8);
  check_same_bits(p.g, after, p.feeds);
}

TEST_CASE("pack_weights: a product whose best panels are others keeps the matrix") {
  Products p;
  const Value b = p.input({5, 6});
  p.share(b, 4, 100);
  p.share(b, 2, 1);
  const auto by_rows = [](const Graph& g, const Node& node) {
    return g.shape(node.inputs[MatmulInput::kA])[0] == 1 ? PackedLayout{.width = 2}
                                                         : PackedLayout{.width = 3};
  };
  const Graph after = cut(p.g, by_rows);
  CHECK(count_readers(after) == 4);
  check_same_bits(p.g, after, p.feeds);
  CHECK(count_readers(cut(p.g, [](const Graph&, const Node&) { return PackedLayout{}; })) == 0);
}

TEST_CASE("pack_weights: a backend is asked once for products of a kind") {
  Products p;
  const Value square = p.input({6, 6}), bias = p.input({6});
  const auto mark = [&](Value y) { p.g.mark_output(fmt::format("y{}", p.feeds.size()), y); };
  for (int i = 0; i < 3; ++i) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const bool biased : {false, true}) {
          mark(ops::matmul(p.g, p.input(transpose_a ? Shape{6, 90} : Shape{90, 6}), square,
                           {biased ? bias : Value{}, transpose_a, transpose_b}));
        }
      }
    }
    mark(ops::matmul(p.g, p.input({91, 6}), square));
    mark(ops::matmul(p.g, p.input({2, 45, 6}), square));
    mark(ops::relu(p.g, ops::matmul(p.g, p.input({90, 6}), square)));
  }
  const Graph before = fuse(p.g);
  int asked = 0;
  const Graph after = cut(before, [&](const Graph& g, const Node& node) {
    ++asked;
    return always(g, node);
  });
  CHECK(asked == 11);
  CHECK(count_readers(after) == 33);
  check_same_bits(before, after, p.feeds);
}

TEST_CASE("pack_weights: matrices without elements stay as they are") {
  Products p;
  p.share(p.input({0, 6}), 4, 100);
  p.share(p.input({6, 0}), 4, 100);
  CHECK(count_readers(cut(p.g)) == 0);
}

}  // namespace
}  // namespace keel::test

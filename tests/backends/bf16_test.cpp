// bf16 on the backend under test: casts, and products and convolutions of bf16 factors.
#include "src/core/bf16.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "tests/backends/kernel_checks.h"
#include "tests/support/each_bf16.h"

namespace keel::test::bf16_cases {
namespace {

Value narrow(Graph& g, Value v) { return ops::cast(g, v, DType::kBF16); }

// Why the backend does not run a product of bf16 factors; empty if it does.
std::string refusal() {
  Graph g;
  const Value a = g.input("a", {DType::kBF16, {2, 2}});
  ops::matmul(g, a, a);
  return make_backend(default_backend(), {1})->prepare({g, g.node(g.size() - 1)}).refusal;
}

bool runs_bf16_products() { return refusal().empty(); }
// onednn does so on every processor.
bool casts_to_bf16() { return default_backend() != "cuda" || runs_bf16_products(); }

TEST_CASE("backend bf16: a processor without the instructions is refused by name") {
  const std::string text = refusal();
  if (text.empty()) return;
  CHECK(text.starts_with("[matmul] a: the kernel of "));
  CHECK((default_backend() == "cuda" || text.find("train.compute = f32") != std::string::npos));
}

// Every kind of number, and some thousand ordinary ones.
Tensor numbers(std::int64_t n) {
  Tensor x = random_normal({n}, 1).to(DType::kF32);
  const auto values = x.as<float>();
  const float special[] = {0.0f,      -0.0f,       INFINITY,       -INFINITY,
                           NAN,       3.4e38f,     -3.4e38f,       0x1p-149f,
                           0x1p-133f, 1 + 0x1p-8f, 1 + 3 * 0x1p-8f};
  std::copy_n(special, std::min<std::size_t>(std::size(special), values.size()), values.begin());
  return x;
}

TEST_CASE("backend bf16: casts are rounded to the nearest, whatever the length") {
  if (!casts_to_bf16()) return;
  const auto backend = make_backend(default_backend(), {2});
  for (const std::int64_t n : {1, 7, 16, 33, 40000}) {
    CAPTURE(n);
    Graph g;
    const Value x = g.input("x", {DType::kF32, {n}});
    g.mark_output("narrow", narrow(g, x));
    g.mark_output("wide", ops::cast(g, narrow(g, x), DType::kF32));
    const Tensor fed = numbers(n), expected = fed.to(DType::kBF16);
    Feeds feeds;
    feeds["x"] = fed.clone();
    const Results got = run_graph(*backend, g, feeds);
    const Tensor& rounded = got.at("narrow");
    REQUIRE(rounded.type() == expected.type());
    CHECK(std::memcmp(rounded.data(), expected.data(), std::size_t(expected.bytes())) == 0);
    check_within(got.at("wide"), expected, [](auto) { return 0.0; });
  }
}

struct Product {
  Shape a, b;
  bool transpose_a = false, transpose_b = false, bias = false;
};

OpCase case_of(const Product& p) {
  OpCase c;
  c.inputs.push_back(random_f32(p.a, 1));
  c.inputs.push_back(random_f32(p.b, 2));
  if (p.bias) c.inputs.push_back(random_f32({p.b[p.transpose_b ? -2 : -1]}, 3));
  c.build = [p](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::matmul(g, narrow(g, v[0]), narrow(g, v[1]),
                                   {p.bias ? v[2] : Value{}, p.transpose_a, p.transpose_b})};
  };
  return c;
}

constexpr int kEvery = 8;
Product product_of(int flags, std::int64_t m, std::int64_t k, std::int64_t n) {
  Product p;
  p.transpose_a = (flags & 1) != 0, p.transpose_b = (flags & 2) != 0, p.bias = (flags & 4) != 0;
  p.a = p.transpose_a ? Shape{k, m} : Shape{m, k};
  p.b = p.transpose_b ? Shape{n, k} : Shape{k, n};
  return p;
}

TEST_CASE("backend bf16: products of every form, with gradients") {
  const EachBf16 each;
  if (!runs_bf16_products()) return;
  const std::int64_t sizes[][3] = {{33, 17, 20},   {1, 1, 1},     {3, 2000, 5}, {128, 784, 48},
                                   {300, 64, 257}, {65, 129, 63}, {8, 400, 512}};
  for (const auto& [m, k, n] : sizes) {
    for (int flags = 0; flags < kEvery; ++flags) {
      const Product p = product_of(flags, m, k, n);
      CAPTURE(p.a.text());
      CAPTURE(p.b.text());
      check_agrees(case_of(p));
    }
  }
  Product batch, shared;
  batch.a = {2, 3, 5, 7}, batch.b = {2, 3, 7, 9};
  shared.a = {4, 6, 7}, shared.b = {7, 9};
  check_agrees(case_of(batch));
  check_agrees(case_of(shared));
}

struct Convolution {
  Shape x, weight;
  ops::ConvOptions options = {};
};
const Convolution kConvolutions[] = {{{2, 3, 9, 9}, {5, 3, 3, 3}, {.stride = 2, .padding = 1}},
                                     {{3, 1, 12, 12}, {20, 1, 5, 5}},
                                     {{2, 16, 8, 8}, {32, 16, 3, 3}, {.padding = 1}},
                                     {{2, 16, 8, 8}, {32, 16, 1, 1}, {.stride = 2}}};

OpCase case_of(const Convolution& of, bool optimize) {
  OpCase c;
  c.inputs.push_back(random_f32(of.x, 1));
  c.inputs.push_back(random_f32(of.weight, 2));
  c.inputs.push_back(random_f32({of.weight[0]}, 3));
  c.optimize = optimize;  // with images stored channels last
  c.build = [options = of.options](Graph& g, const std::vector<Value>& v) {
    ops::ConvOptions with_bias = options;
    with_bias.bias = v[2];
    return std::vector{ops::conv2d(g, narrow(g, v[0]), narrow(g, v[1]), with_bias)};
  };
  return c;
}

TEST_CASE("backend bf16: convolutions, with gradients, in both orders of images") {
  const EachBf16 each;
  if (!runs_bf16_products()) return;
  for (const Convolution& of : kConvolutions) {
    for (const bool optimize : {false, true}) {
      CAPTURE(of.x.text());
      CAPTURE(of.weight.text());
      CAPTURE(optimize);
      check_agrees(case_of(of, optimize));
    }
  }
}

TEST_CASE("backend bf16: the number of threads changes no bit") {
  const EachBf16 each;
  if (!runs_bf16_products()) return;
  const std::int64_t sizes[][3] = {{128, 784, 100}, {4, 800, 500},  {3, 2000, 5},
                                   {1, 5000, 1},    {1, 300, 400},  {257, 65, 129},
                                   {64, 1024, 768}, {512, 512, 512}};
  for (const auto& [m, k, n] : sizes) {
    CAPTURE(m);
    CAPTURE(k);
    check_thread_counts(case_of(product_of(4, m, k, n)));
  }
  for (const Convolution& of : kConvolutions) check_thread_counts(case_of(of, true));
}

TEST_CASE("backend bf16: moving elements keeps their bits") {
  if (!casts_to_bf16()) return;
  const auto backend = make_backend(default_backend(), {2});
  Graph g;
  const Value x = narrow(g, g.input("x", {DType::kF32, {9, 7, 33}}));
  g.mark_output("turned", ops::transpose(g, x, {2, 1, 0}));
  g.mark_output("planes", ops::transpose(g, x, {1, 0, 2}));
  g.mark_output("padded", ops::pad(g, x, {1, 0, 2}, {0, 1, 0}));
  g.mark_output("joined", ops::concat(g, {x, x}, 1));
  g.mark_output("part", ops::slice(g, x, {1, 2, 0}, {3, 4, 2}));
  Feeds feeds;
  feeds["x"] = random_f32({9, 7, 33}, 1);
  const Results got = run_graph(*backend, g, feeds);
  const Results expected = run_graph(*make_backend("reference"), g, feeds);
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    check_within(got.at(name), value, [](auto) { return 0.0; });
  }
}

}  // namespace
}  // namespace keel::test::bf16_cases

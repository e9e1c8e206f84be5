// Casts that kernels do by themselves: which they are, which stay, and that every bit stays.
#include <doctest/doctest.h>

#include <cstring>

#include "src/autodiff/gradient.h"
#include "src/graph/verify.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/passes/bf16_products.h"
#include "src/passes/pipeline.h"
#include "tests/passes/count.h"
#include "tests/support/checks.h"
#include "tests/support/each_bf16.h"
#include "tests/support/tested_backends.h"

namespace keel::test::fuse_cases {
namespace {

const OpInfo& cast_op() { return elementwise_op(EwCode::kCast); }
int casts(const Graph& g) { return count(g, cast_op()); }
int narrowed(const Graph& g) {
  int n = 0;
  for (int i = 0; i < g.size(); ++i) n += g.node(i).is_bf16;
  return n;
}

Graph absorbed(const Graph& g, bool chosen = true) {
  Graph result = fuse_casts(g, [&](const Graph&, const Node&) { return chosen; });
  verify(result, "fuse_casts");
  return result;
}

Value bf16(Graph& g, Value v) { return ops::cast(g, v, DType::kBF16); }
Value wide(Graph& g, Value v) { return ops::cast(g, v, DType::kF32); }

TEST_CASE("fuse_casts: the node that computes a number rounds it for its only reader") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4}});
  g.mark_output("y", bf16(g, ops::relu(g, x)));
  CHECK(casts(absorbed(g, false)) == 1);
  const Graph after = absorbed(g);
  CHECK(casts(after) == 0);
  const Node& relu = after.node(after.outputs()[0].value);
  CHECK(relu.op == &elementwise_op(EwCode::kRelu));
  CHECK(relu.is_bf16);
  CHECK(relu.outputs[0] == TensorType{DType::kBF16, {4}});
}

TEST_CASE("fuse_casts: leaves, views, second results and values with more readers stay") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 2}});
  const Value shared = ops::exp(g, x);
  g.mark_output("leaf", bf16(g, x));
  g.mark_output("view", bf16(g, ops::reshape(g, ops::exp(g, x), {8})));
  g.mark_output("part", bf16(g, ops::split(g, ops::exp(g, x), 2)[1]));
  g.mark_output("shared", bf16(g, shared));
  g.mark_output("other", ops::neg(g, shared));
  const Graph after = absorbed(g);
  CHECK(casts(after) == 4);
  CHECK(narrowed(after) == 0);
}

TEST_CASE("fuse_casts: element-wise ops read bf16 beside float32, but not instead of it") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4}}), h = g.input("h", {DType::kBF16, {4}});
  g.mark_output("beside", ops::add(g, x, wide(g, h)));
  CHECK(casts(absorbed(g)) == 0);
  CHECK(casts(absorbed(g, false)) == 1);
  g.mark_output("alone", ops::exp(g, wide(g, h)));
  g.mark_output("twice", ops::mul(g, wide(g, h), wide(g, h)));
  CHECK(casts(absorbed(g)) == 3);
}

TEST_CASE("elementwise: operands of bf16 beside float32 have a float32 result") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4}}), h = g.input("h", {DType::kBF16, {4}});
  CHECK(g.type(ops::add(g, h, x)).dtype == DType::kF32);
  CHECK(g.type(ops::add(g, h, h)).dtype == DType::kBF16);
  const Value d = g.input("d", {DType::kF64, {4}});
  check_refused([&] { ops::add(g, d, h); }, "[add] operand type");
  check_refused([&] { ops::add(g, x, d); }, "[add] operand type");
}

Graph absorbed_by(const Backend& backend, const Graph& g) {
  Graph result = fuse_casts(g, [&](const Graph& of, const Node& node) {
    return backend.narrows_result({of, node});
  });
  verify(result, "fuse_casts");
  return result;
}

// CHECKs that every tested backend gives every bit the same with casts and without.
void check_bits(const Graph& before, const Feeds& feeds) {
  for (const std::string& name : tested_backends()) {
    CAPTURE(name);
    const auto backend = make_backend(name, {2});
    const Graph after = absorbed_by(*backend, before);
    const Results expected = run_graph(*backend, before, feeds, {.optimize = false});
    const Results got = run_graph(*backend, after, feeds, {.optimize = false});
    for (const auto& [output, value] : expected) {
      CAPTURE(output);
      const Tensor& other = got.at(output);
      REQUIRE(other.type() == value.type());
      CHECK(std::memcmp(other.data(), value.data(), std::size_t(value.bytes())) == 0);
    }
  }
}

// Element-wise ops alone and in a chain, stretched operands, and dropout, at an odd width.
Graph activations(Feeds& feeds) {
  Graph g;
  const auto input = [&](const std::string& name, const Shape& shape) {
    feeds[name] = random_normal(shape, std::uint32_t(feeds.size() + 1));
    return g.input(name, {DType::kF32, shape});
  };
  const Shape whole{37, 131};
  const Value x = input("x", whole), row = input("row", {131}), column = input("column", {37, 1});
  const Value zero = g.constant(Tensor(DType::kI32, {}));
  const Value h = bf16(g, ops::relu(g, x)), narrow_row = bf16(g, ops::exp(g, row));
  g.mark_output("relu", h);
  g.mark_output("gate", ops::elementwise(g, EwCode::kReluBackward, {x, wide(g, h)}));
  g.mark_output("row", ops::mul(g, x, wide(g, narrow_row)));
  g.mark_output("column", ops::sub(g, x, wide(g, bf16(g, ops::tanh(g, column)))));
  g.mark_output("chain", bf16(g, ops::mul(g, ops::add(g, x, row), column)));
  g.mark_output("dropout", bf16(g, ops::dropout(g, x, {zero, zero}, 0.3, 1)));
  return fuse(g);
}

TEST_CASE("fuse_casts: the bits of element-wise ops and of dropout stay") {
  Feeds feeds;
  const Graph before = activations(feeds);
  for (const std::string& name : tested_backends()) {
    if (name == "cuda") continue;  // of these ops it does none
    CHECK(casts(absorbed_by(*make_backend(name, {1}), before)) == 0);
  }
  check_bits(before, feeds);
}

// Two layers with their gradients, products, convolutions and all.
Graph layers(Feeds& feeds) {
  Graph g;
  const auto input = [&](const std::string& name, const Shape& shape) {
    feeds[name] = random_normal(shape, std::uint32_t(feeds.size() + 1));
    return g.input(name, {DType::kF32, shape});
  };
  const Value x = input("x", {5, 3, 6, 6}), filter = input("filter", {7, 3, 3, 3});
  const Value w1 = input("w1", {7 * 16, 20}), w2 = input("w2", {20, 9});
  const Value images = ops::relu(g, ops::conv2d(g, x, filter));
  Value h = ops::reshape(g, ops::mul(g, images, images), {5, 7 * 16});
  h = ops::matmul(g, ops::relu(g, ops::matmul(g, h, w1)), w2);
  const Value loss = ops::sum(g, ops::square(g, h));
  const std::vector<Value> d = gradient(g, loss, std::vector{x, filter, w1, w2});
  g.mark_output("loss", loss);
  for (std::size_t i = 0; i < d.size(); ++i) g.mark_output(fmt::format("d{}", i), d[i]);
  return fuse(bf16_products(g));
}

TEST_CASE("fuse_casts: the bits of a step with products and convolutions stay") {
  const EachBf16 each;
  Graph asked;
  const Value a = asked.input("a", {DType::kBF16, {2, 2}});
  ops::matmul(asked, a, a);
  const auto backend = make_backend(default_backend(), {1});
  if (!backend->prepare({asked, asked.node(asked.size() - 1)}).refusal.empty()) return;
  Feeds feeds;
  const Graph before = layers(feeds);
  CHECK(narrowed(absorbed(before)) > 0);
  check_bits(before, feeds);
}

TEST_CASE("graph: only float32 results of ops are narrowed") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4}}), d = g.input("d", {DType::kF64, {4}});
  check_refused([&] { g.narrow_result(x); }, "result of x");
  check_refused([&] { g.narrow_result(ops::neg(g, d)); }, "result of neg");
  check_refused([&] { g.narrow_result({}); }, "narrow_result");
}

}  // namespace
}  // namespace keel::test::fuse_cases

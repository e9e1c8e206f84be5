// Products with bf16 factors: what is cast, how often, and that gradients are those of the
// narrowed forward.
#include "src/passes/bf16_products.h"

#include <doctest/doctest.h>

#include "src/autodiff/gradient.h"
#include "src/core/bf16.h"
#include "src/graph/verify.h"
#include "src/ops/conv2d.h"
#include "src/ops/dropout.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "tests/passes/count.h"
#include "tests/passes/fed_graph.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

int casts(const Graph& g) { return count(g, elementwise_op(EwCode::kCast)); }

Graph narrowed(const Graph& g) {
  Graph result = bf16_products(g);
  verify(result, "bf16_products");
  return result;
}

// Two linear layers with a shared weight, and its gradient.
Graph shared_weight() {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 3, 4}});
  const Value w = g.parameter("w", {DType::kF32, {4, 4}}, nullptr);
  Value h = ops::relu(g, ops::matmul(g, x, w));
  h = ops::matmul(g, h, w);
  const Value loss = ops::sum(g, ops::square(g, h), {0, 1, 2});
  g.mark_output("dw", gradient(g, loss, std::vector{w})[0]);
  return g;
}

TEST_CASE("bf16_products: factors are cast once however many products read them") {
  const Graph before = shared_weight(), after = narrowed(before);
  CHECK(count(before, kMatmul) == 5);  // two forward, dw of both, dx of the second
  CHECK(count(after, kMatmul) == 5);
  // x, w, relu's result, and the gradients of both products; relu's result back again.
  CHECK(casts(after) == 6);
  for (int i = 0; i < after.size(); ++i) {
    const Node& node = after.node(i);
    if (node.op != &kMatmul) continue;
    CHECK(after.type(node.inputs[MatmulInput::kA]).dtype == DType::kBF16);
    CHECK(after.type(node.inputs[MatmulInput::kB]).dtype == DType::kBF16);
    CHECK(node.outputs[0].dtype == DType::kF32);
  }
  CHECK(after.type(after.outputs()[0].value) == before.type(before.outputs()[0].value));
}

TEST_CASE("bf16_products: relu's backward reads the copy that the next product reads") {
  const Graph after = narrowed(shared_weight());
  int backwards = 0;
  for (int i = 0; i < after.size(); ++i) {
    const Node& node = after.node(i);
    if (node.op != &elementwise_op(EwCode::kReluBackward)) continue;
    ++backwards;
    const Node& wide = after.node(node.inputs[1]);
    REQUIRE(wide.op == &elementwise_op(EwCode::kCast));
    const Value narrow = wide.inputs[0];
    CHECK(after.type(narrow).dtype == DType::kBF16);
    CHECK(after.node(after.node(narrow).inputs[0]).op == &elementwise_op(EwCode::kRelu));
  }
  CHECK(backwards == 1);
}

// ReLU, dropout, a product and its gradients. Without `passes` the casts are those of the graph
// itself, and the backward of ReLU reads its result in float32.
Graph dropped_units(bool passes) {
  Graph g;
  const auto factor = [&](Value v) { return passes ? v : ops::cast(g, v, DType::kBF16); };
  const Value x = g.input("x", {DType::kF32, {64, 8}}), w = g.input("w", {DType::kF32, {8, 5}});
  const Value zero = g.constant(Tensor(DType::kI32, {}));
  const Value h = ops::dropout(g, ops::relu(g, x), {zero, zero}, 0.5, 1);
  const Value y = ops::matmul(g, factor(h), factor(w));
  const Value loss = ops::sum(g, ops::square(g, y));
  g.mark_output("dx", gradient(g, loss, std::vector{x})[0]);
  return passes ? narrowed(g) : std::move(g);
}

TEST_CASE("bf16_products: relu's backward reads the copy after a dropout, with the same result") {
  const Graph after = dropped_units(true);
  for (int i = 0; i < after.size(); ++i) {
    const Node& node = after.node(i);
    if (node.op != &elementwise_op(EwCode::kReluBackward)) continue;
    const Node& wide = after.node(node.inputs[1]);
    REQUIRE(wide.op == &elementwise_op(EwCode::kCast));
    CHECK(after.node(after.node(wide.inputs[0]).inputs[0]).op == &kDropout);
  }
  Feeds feeds;
  feeds["x"] = random_normal({64, 8}, 1), feeds["w"] = random_normal({8, 5}, 2);
  check_results(dropped_units(false), after, feeds,
                [](const Tensor& expected, const Tensor& got) { check_close(got, expected, 0); });
}

// Two dropouts of one ReLU, each before a product of its own. Only the first has a gradient, and
// the other comes last: it leaves other units, whose sign says nothing of those.
Graph two_dropouts(bool passes, std::int64_t second_seed) {
  Graph g;
  const auto factor = [&](Value v) { return passes ? v : ops::cast(g, v, DType::kBF16); };
  const Value x = g.input("x", {DType::kF32, {64, 8}}), w = g.input("w", {DType::kF32, {8, 5}});
  const Value zero = g.constant(Tensor(DType::kI32, {})), h = ops::relu(g, x);
  const Value first = ops::dropout(g, h, {zero, zero}, 0.5, 1);
  const Value second = ops::dropout(g, h, {zero, zero}, 0.5, second_seed);
  const Value y = ops::matmul(g, factor(first), factor(w));
  const Value other = ops::matmul(g, factor(second), factor(w));
  g.mark_output("other", other);
  g.mark_output("dx", gradient(g, ops::sum(g, ops::square(g, y)), std::vector{x})[0]);
  return passes ? narrowed(g) : std::move(g);
}

TEST_CASE("bf16_products: relu's backward does not read what another dropout left") {
  Feeds feeds;
  feeds["x"] = random_normal({64, 8}, 1), feeds["w"] = random_normal({8, 5}, 2);
  for (const std::int64_t seed : {1, 9}) {  // the stream of its numbers is another in any case
    CAPTURE(seed);
    check_results(two_dropouts(false, seed), two_dropouts(true, seed), feeds,
                  [](const Tensor& expected, const Tensor& got) { check_close(got, expected, 0); });
  }
}

TEST_CASE("bf16_products: a graph without products stays, as do products in other types") {
  Graph g;
  const Value x = g.input("x", {DType::kF64, {2, 2}});
  g.mark_output("y", ops::matmul(g, x, x));
  g.mark_output("z", ops::add(g, x, x));
  const Graph after = narrowed(g);
  CHECK(casts(after) == 0);
  CHECK(after.size() == g.size());
  const Graph narrow = narrowed(shared_weight());
  CHECK(casts(narrowed(narrow)) == casts(narrow));
}

// The gradients of graphs that round their factors themselves are the same nodes.
TEST_CASE("bf16_products: the pass after the gradients, and casts before them, agree") {
  const auto build = [](bool casts_itself) {
    Graph g;
    const auto factor = [&](Value v) { return casts_itself ? ops::cast(g, v, DType::kBF16) : v; };
    const Value x = g.input("x", {DType::kF32, {2, 3, 6, 6}});
    const Value w = g.input("w", {DType::kF32, {4, 3, 3, 3}});
    const Value bias = g.input("bias", {DType::kF32, {4}});
    const Value v = g.input("v", {DType::kF32, {64, 5}});
    const Value u = g.input("u", {DType::kF32, {5}});
    const Value y = ops::conv2d(g, factor(x), factor(w), {.bias = bias});
    const Value rows = ops::reshape(g, ops::tanh(g, y), {2, 64});
    const Value z = ops::matmul(g, factor(rows), factor(v), {.bias = u});
    const Value loss = ops::sum(g, ops::square(g, z), {0, 1});
    const std::vector<Value> wrt{x, w, bias, v, u};
    const std::vector<Value> d = gradient(g, loss, wrt);
    g.mark_output("loss", loss);
    for (std::size_t i = 0; i < d.size(); ++i) g.mark_output(fmt::format("d{}", i), d[i]);
    return casts_itself ? std::move(g) : narrowed(g);
  };
  const Graph own = build(true), passed = build(false);
  Feeds feeds;
  std::uint32_t stream = 1;
  for (Value v : own.leaves(NodeKind::kInput)) {
    feeds[own.node(v).name] = random_normal(own.shape(v), stream++);
  }
  check_results(own, passed, feeds,
                [](const Tensor& expected, const Tensor& got) { check_close(got, expected, 0); });
}

TEST_CASE("bf16_products: the reference rounds factors and nothing else") {
  Graph g;
  const Value a = g.input("a", {DType::kF32, {1, 1}}), b = g.input("b", {DType::kF32, {1, 1}});
  g.mark_output("y", ops::matmul(g, a, b));
  const double x = 1 + 0x1p-9 + 0x1p-10, y = 3 + 0x1p-8;
  const double rounded = double(float(BF16(x))) * double(float(BF16(y)));
  CHECK(rounded != x * y);
  Feeds feeds;
  feeds["a"] = f64({1, 1}, {x});
  feeds["b"] = f64({1, 1}, {y});
  reference::ReferenceBackend judge;
  check_close(run_graph(judge, narrowed(g), feeds).at("y"), f64({1, 1}, {rounded}), 0);
  check_close(run_graph(judge, g, feeds).at("y"), f64({1, 1}, {x * y}), 0);
}

TEST_CASE("bf16_products: products of mixed factors and biases are refused") {
  const TensorType narrow{DType::kBF16, {2, 2}}, wide{DType::kF32, {2, 2}};
  const auto product = [](Graph& g, const std::vector<Value>& v) {
    return std::vector{ops::matmul(g, v[0], v[1], {.bias = v.size() > 2 ? v[2] : Value{}})};
  };
  check_op_refused({narrow, wide}, product, "matmul", "type of b: expected bf16, got f32");
  check_op_refused({narrow, narrow, {DType::kBF16, {2}}}, product, "matmul",
                   "type of bias: expected f32, got bf16");
}

}  // namespace
}  // namespace keel::test

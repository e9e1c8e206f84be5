// Building gradients: what is appended, under which names, and what is refused.
#include "src/autodiff/gradient.h"

#include <doctest/doctest.h>

#include "src/ops/elementwise.h"
#include "src/ops/loss.h"
#include "src/ops/matmul.h"
#include "src/ops/optimizer_step.h"
#include "src/ops/reduce.h"
#include "tests/support/checks.h"
#include "tests/support/gradcheck.h"

namespace keel::test {
namespace {

const TensorType kSquare{DType::kF32, {2, 2}};

bool has_node(const Graph& g, std::string_view name) {
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).name == name) return true;
  }
  return false;
}

TEST_CASE("gradient: a two-layer network with a weight that is used twice") {
  OpCase c;
  c.inputs.push_back(random_normal({3, 4}, 1));
  c.inputs.push_back(random_normal({4, 4}, 2, 0, 0.5));
  c.inputs.push_back(random_normal({4}, 3));
  c.inputs.push_back(i32({3}, {0, 3, 2}));
  c.build = [](Graph& g, const std::vector<Value>& v) {
    const Value h = ops::tanh(g, ops::matmul(g, v[0], v[1], {.bias = v[2]}));
    const Value logits = ops::matmul(g, h, v[1], {.bias = v[2], .transpose_b = true});
    return std::vector{ops::cross_entropy(g, logits, v[3]).mean, h};
  };
  gradcheck(c);
}

TEST_CASE("gradient: of the types of wrt, 1 for the loss itself and 0 where it does not depend") {
  Graph g;
  const Value x = g.input("x", kSquare), unused = g.input("unused", {DType::kF64, {3}});
  const Value h = ops::square(g, x), loss = ops::sum(g, h);
  const std::vector<Value> d = gradient(g, loss, std::vector{x, unused, loss, h});
  CHECK(g.type(d[0]) == kSquare);
  CHECK(g.type(d[1]) == g.type(unused));
  CHECK(g.type(d[3]) == kSquare);
  OpCase c;
  c.inputs.push_back(f64({2, 2}, {1, 2, 3, 4}));
  c.gradients = false;
  c.build = [](Graph& graph, const std::vector<Value>& v) {
    const Value square = ops::square(graph, v[0]), sum = ops::sum(graph, square);
    return gradient(graph, sum, std::vector{v[0], sum, square});
  };
  const Results results = run_reference(c);
  check_close(results.at("y0"), f64({2, 2}, {2, 4, 6, 8}));
  check_close(results.at("y1"), f64({}, {1}));
  check_close(results.at("y2"), f64({2, 2}, {1, 1, 1, 1}));
}

TEST_CASE("gradient: what the loss does not depend on is absent unless zeros are asked for") {
  Graph g;
  const Value x = g.input("x", kSquare), unused = g.input("unused", kSquare);
  const Value loss = ops::sum(g, ops::square(g, x));
  const std::vector<Value> wrt{x, unused, ops::square(g, x)};
  const Gradients absent = differentiate(g, loss, wrt);
  CHECK(absent.of[0].valid());
  CHECK_FALSE(absent.of[1].valid());
  CHECK_FALSE(absent.of[2].valid());  // it depends on x as the loss does, not the loss on it
  CHECK(absent.states.empty());
  const Gradients zeros = differentiate(g, loss, wrt, Unreached::kZero);
  CHECK(g.node(zeros.of[1]).kind == NodeKind::kConstant);
  CHECK(g.type(zeros.of[2]) == kSquare);
}

TEST_CASE("gradient: nodes are named after their forward node") {
  Graph g;
  const Value x = g.input("x", kSquare), w = g.parameter("w", kSquare, {});
  Value y;
  {
    const auto scope = g.scope("fc1");
    y = ops::matmul(g, x, w);
  }
  gradient(g, ops::sum(g, y), std::vector{w});
  CHECK(has_node(g, "fc1/matmul.backward/matmul"));
  CHECK_FALSE(has_node(g, "fc1/matmul.backward/matmul.2"));  // x is not asked for
}

TEST_CASE("gradient: only what wrt depends on is walked; other ops need no backward") {
  Graph g;
  const Value x = g.input("x", kSquare), w = g.parameter("w", kSquare, {});
  const Value factor = ops::sum_squares(g, x);  // has no backward
  const Value loss = ops::sum(g, ops::mul(g, w, factor));
  CHECK_NOTHROW(gradient(g, loss, std::vector{w}));
  check_refused([&] { gradient(g, loss, std::vector{x}); }, "[sum_squares] has no backward",
                "(node sum_squares); stop the gradient before it");
}

TEST_CASE("gradient: the loss must be a scalar") {
  Graph g;
  const Value x = g.input("x", kSquare), one = g.input("one", {DType::kF32, {1}});
  check_refused([&] { gradient(g, x, std::vector{x}); },
                "[gradient] loss: expected a scalar, got (2, 2)");
  check_refused([&] { gradient(g, one, std::vector{one}); }, "[gradient] loss", "got (1)");
}

TEST_CASE("gradient: a value read by many ops gets the sum of all") {
  OpCase c;
  c.inputs.push_back(f64({2}, {0.5, -2}));
  c.gradients = false;
  c.build = [](Graph& g, const std::vector<Value>& v) {
    Value total = v[0];
    for (int i = 0; i < 4; ++i) total = ops::add(g, total, ops::scale(g, v[0], 10));
    return gradient(g, ops::sum(g, total), v);
  };
  check_close(run_reference(c).at("y0"), f64({2}, {41, 41}));
}

}  // namespace
}  // namespace keel::test

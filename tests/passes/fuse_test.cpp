// Fusion: what is joined, what is not, and that values stay.
#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "src/graph/next_name.h"
#include "src/graph/verify.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

using Make = std::function<void(Graph&, std::vector<Value>)>;

// One word an op: its name, then "+bias", "+relu" or the steps of its program.
std::string text_of(const Graph& g) {
  std::string text;
  for (int i = 0; i < g.size(); ++i) {
    const Node& node = g.node(i);
    if (!node.op) continue;
    std::string word(node.op->name);
    if (node.op == &kFusedElementwise) {
      word = "fused[" + attr_text(node.attrs.as<FusedAttrs>().program) + "]";
    }
    const bool is_product = node.op == &kMatmul || node.op == &kConv2d;
    if (is_product && node.inputs[2].valid()) word += "+bias";
    if (node.attrs.text().find("activation=relu") != std::string::npos) word += "+relu";
    text += (text.empty() ? "" : " ") + word;
  }
  return text;
}

void check_fusion(const std::vector<Shape>& shapes, const Make& make, const std::string& expected) {
  Graph g;
  std::vector<Value> inputs;
  Feeds feeds;
  for (const Shape& s : shapes) {
    const std::string name = fmt::format("x{}", inputs.size());
    feeds[name] = random_normal(s, 1 + std::uint32_t(inputs.size()));
    inputs.push_back(g.input(name, {DType::kF64, s}));
  }
  make(g, inputs);
  const Graph fused = fuse(g);
  verify(fused, "fuse");
  CHECK(text_of(fused) == expected);
  reference::ReferenceBackend backend;
  const Results before = run_graph(backend, g, feeds), after = run_graph(backend, fused, feeds);
  for (const auto& [name, value] : before) {
    CAPTURE(name);
    check_close(after.at(name), value, 0);
  }
}

const Shape kShape{2, 3};

TEST_CASE("fuse: a chain becomes one node under the name of its last op") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, kShape});
  Value y = ops::exp(g, ops::neg(g, x));
  const NextName name(g, "last");
  y = ops::add(g, y, x);
  g.mark_output("y", y);
  const Graph fused = fuse(g);
  CHECK(text_of(fused) == "fused[r1=neg(r0) r2=exp(r1) r3=add(r2,r0)]");
  CHECK(fused.node(fused.outputs()[0].value).name == "last");
}

TEST_CASE("fuse: both operands of an op may be chains, and operands are shared") {
  check_fusion(
      {kShape, kShape},
      [](Graph& g, std::vector<Value> v) {
        const Value sum = ops::add(g, v[0], v[1]);
        g.mark_output("y", ops::mul(g, sum, ops::sub(g, v[1], v[0])));
      },
      "fused[r2=sub(r0,r1) r3=add(r1,r0) r4=mul(r3,r2)]");
}

TEST_CASE("fuse: a value with two readers, or that is an output, is kept") {
  check_fusion(
      {kShape},
      [](Graph& g, std::vector<Value> v) {
        const Value e = ops::exp(g, v[0]);
        const Value neg = ops::neg(g, e);
        g.mark_output("y", ops::add(g, neg, ops::tanh(g, e)));
      },
      "exp fused[r1=tanh(r0) r2=neg(r0) r3=add(r2,r1)]");
  check_fusion(
      {kShape},
      [](Graph& g, std::vector<Value> v) {
        const Value e = ops::exp(g, v[0]);
        g.mark_output("e", e);
        g.mark_output("y", ops::neg(g, e));
      },
      "exp neg");
  check_fusion(
      {kShape},
      [](Graph& g, std::vector<Value> v) {
        const Value e = ops::exp(g, v[0]);
        g.mark_output("y", ops::mul(g, e, e));
      },
      "exp mul");
}

TEST_CASE("fuse: a smaller value is not computed again for every place it is stretched to") {
  check_fusion(
      {{3}, kShape},
      [](Graph& g, std::vector<Value> v) {
        g.mark_output("y", ops::mul(g, v[1], ops::exp(g, v[0])));
      },
      "exp mul");
}

TEST_CASE("fuse: comparisons, select and cast stay on their own") {
  check_fusion(
      {kShape, kShape},
      [](Graph& g, std::vector<Value> v) {
        const Value least = ops::less(g, ops::neg(g, v[0]), v[1]);
        g.mark_output("y", ops::exp(g, ops::select(g, least, v[0], v[1])));
      },
      "neg less select exp");
}

TEST_CASE("fuse: a program stays within 16 steps and 8 operands") {
  Graph g;
  Value y = g.input("x", {DType::kF32, kShape});
  for (int i = 0; i < 40; ++i) y = ops::tanh(g, y);
  Value sum = y;
  for (int i = 0; i < 20; ++i) {
    sum = ops::add(g, sum, g.input(fmt::format("x{}", i), {DType::kF32, kShape}));
  }
  g.mark_output("y", sum);
  const Graph fused = fuse(g);
  int steps = 0;
  for (int i = 0; i < fused.size(); ++i) {
    if (!fused.node(i).op) continue;
    const EwProgram program = program_of(fused.node(i));
    CHECK(program.steps.size() <= 16);
    CHECK(program.inputs <= 8);
    steps += int(program.steps.size());
  }
  CHECK(steps == 60);
}

TEST_CASE("fuse: bias and relu join the product before them") {
  struct Row {
    bool bias, relu;
    const char* expected;
  };
  for (const Row& row : {Row{true, true, "matmul+bias+relu"}, Row{true, false, "matmul+bias"},
                         Row{false, true, "matmul+relu"}, Row{false, false, "matmul"}}) {
    for (const Shape& a : {Shape{2, 4}, Shape{2, 3, 4}}) {
      CAPTURE(row.expected);
      CAPTURE(a.text());
      check_fusion(
          {a, {4, 3}, {3}},
          [&](Graph& g, std::vector<Value> v) {
            Value y = ops::matmul(g, v[0], v[1]);
            if (row.bias) y = ops::add(g, y, v[2]);
            g.mark_output("y", row.relu ? ops::relu(g, y) : y);
          },
          row.expected);
    }
  }
  check_fusion(
      {{1, 2, 4, 4}, {3, 2, 3, 3}, {3}},
      [](Graph& g, std::vector<Value> v) {
        g.mark_output("y", ops::relu(g, ops::conv2d(g, v[0], v[1], {.bias = v[2], .padding = 1})));
      },
      "conv2d+bias+relu");
}

TEST_CASE("fuse: what is not a row bias, or comes after the relu, stays an op of its own") {
  check_fusion(
      {{2, 4}, {4, 3}, {2, 3}},
      [](Graph& g, std::vector<Value> v) {
        g.mark_output("y", ops::relu(g, ops::add(g, ops::matmul(g, v[0], v[1]), v[2])));
      },
      "matmul fused[r2=add(r0,r1) r3=relu(r2)]");
  check_fusion(
      {{2, 4}, {4, 1}, {3}},
      [](Graph& g, std::vector<Value> v) {
        g.mark_output("y", ops::add(g, ops::matmul(g, v[0], v[1]), v[2]));
      },
      "matmul add");
  check_fusion(
      {{2, 4}, {4, 3}, {3}},
      [](Graph& g, std::vector<Value> v) {
        g.mark_output("y", ops::add(g, ops::matmul(g, v[0], v[1], {.bias = v[2]}), v[2]));
      },
      "matmul+bias add");
  const Make after_relu = [](Graph& g, std::vector<Value> v) {
    g.mark_output("y", ops::add(g, ops::relu(g, ops::matmul(g, v[0], v[1])), v[2]));
  };
  check_fusion({{2, 4}, {4, 3}, {3}}, after_relu, "matmul+relu add");
  Graph g;
  after_relu(g, {g.input("a", {DType::kF32, {2, 4}}), g.input("b", {DType::kF32, {4, 3}}),
                 g.input("c", {DType::kF32, {3}})});
  CHECK(text_of(fuse(fuse(g))) == "matmul+relu add");
}

TEST_CASE("fuse: a product that is read elsewhere keeps its own value") {
  check_fusion(
      {{2, 4}, {4, 3}, {3}},
      [](Graph& g, std::vector<Value> v) {
        const Value y = ops::matmul(g, v[0], v[1]);
        g.mark_output("product", y);
        g.mark_output("y", ops::relu(g, ops::add(g, y, v[2])));
      },
      "matmul fused[r2=add(r0,r1) r3=relu(r2)]");
  check_fusion(
      {{2, 4}, {4, 3}, {3}},
      [](Graph& g, std::vector<Value> v) {
        const Value y = ops::add(g, ops::matmul(g, v[0], v[1]), v[2]);
        g.mark_output("before", y);
        g.mark_output("y", ops::relu(g, y));
      },
      "matmul+bias relu");
}

TEST_CASE("fuse: what nobody needs neither takes from what is needed nor keeps it apart") {
  check_fusion(
      {{2, 4}, {4, 3}},
      [](Graph& g, std::vector<Value> v) {
        const Value product = ops::matmul(g, v[0], v[1]), exp = ops::exp(g, product);
        ops::relu(g, product);
        ops::neg(g, exp);
        g.mark_output("y", exp);
      },
      "matmul exp");
  check_fusion(
      {{2, 4}},
      [](Graph& g, std::vector<Value> v) {
        const Value exp = ops::exp(g, v[0]);
        ops::relu(g, exp);
        g.mark_output("y", ops::neg(g, exp));
      },
      "fused[r1=exp(r0) r2=neg(r1)]");
}

}  // namespace
}  // namespace keel::test

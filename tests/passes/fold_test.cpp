// Constant folding and ops that change nothing.
#include <doctest/doctest.h>

#include "backends/reference/backend.h"
#include "src/graph/verify.h"
#include "src/ops/elementwise.h"
#include "src/ops/layout.h"
#include "src/ops/op_table.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"
#include "tests/support/checks.h"

namespace keel::test {
namespace {

const TensorType kWide{DType::kF64, {2, 3}};

// The op names that are left after folding and sweeping, in order.
std::string ops_of(const Graph& g) {
  std::string text;
  for (int i = 0; i < g.size(); ++i) {
    if (g.node(i).op) text += (text.empty() ? "" : " ") + std::string(g.node(i).op->name);
  }
  return text;
}

Graph folded(const Graph& g) {
  Graph result = remove_dead_code(fold_constants(g));
  verify(result, "fold_constants");
  return result;
}

Results values_of(const Graph& g, const Feeds& feeds) {
  reference::ReferenceBackend backend;
  return run_graph(backend, g, feeds);
}

// Builds y from x, checks which ops folding leaves, and that the values stay.
void check_folding(const std::function<Value(Graph&, Value)>& build, const std::string& left) {
  CAPTURE(left);
  Graph g;
  g.mark_output("y", build(g, g.input("x", kWide)));
  const Graph f = folded(g);
  CHECK(ops_of(f) == left);
  Feeds feeds;
  feeds["x"] = random_normal(kWide.shape, 1);
  check_close(values_of(f, feeds).at("y"), values_of(g, feeds).at("y"), 1e-15);
}

TEST_CASE("fold: every element-wise code on constants, with broadcasting") {
  for (int i = 0; i < kEwCount; ++i) {
    const EwCode code = static_cast<EwCode>(i);
    CAPTURE(elementwise_op(code).name);
    Graph g;
    std::vector<Value> operands;
    const Shape shapes[] = {{2, 1}, {3}, {2, 3}};
    for (int k = 0; k < arity(code); ++k) {
      Tensor t = random_normal(shapes[k], std::uint32_t(k));
      const bool is_condition = code == EwCode::kSelect && k == 0;
      operands.push_back(g.constant(is_condition ? t.to(DType::kU8) : std::move(t)));
    }
    Attrs attrs;
    if (code == EwCode::kScale) attrs = ScaleAttrs{2, 1};
    if (code == EwCode::kCast) attrs = CastAttrs{DType::kI32};
    g.mark_output("y", g.add(elementwise_op(code), operands, attrs));
    const Graph f = folded(g);
    CHECK(ops_of(f) == "");
    check_close(values_of(f, {}).at("y"), values_of(g, {}).at("y"), 0);
  }
}

TEST_CASE("fold: constants feed constants, up to a size, under names that stay unique") {
  Graph g;
  const Value x = g.input("x", {DType::kF64, {}});
  const Value one = g.constant(1.0, DType::kF64);
  const Value doubled = ops::scale(g, one, 2, 0);
  // Comes after the fold of `doubled`, whose constant must not take its name.
  const Value three = g.constant(3.0, DType::kF64);
  g.mark_output("y", ops::add(g, ops::mul(g, x, ops::exp(g, doubled)), three));
  const Graph f = folded(g);
  CHECK(ops_of(f) == "mul add");
  Graph large;
  large.mark_output("y", ops::neg(large, large.constant(Tensor(DType::kF64, {1025}))));
  CHECK(ops_of(folded(large)) == "neg");
}

TEST_CASE("fold: scales merge, and a scale by 1 disappears") {
  check_folding([](auto& g, Value x) { return ops::scale(g, ops::scale(g, x, 2, 3), -4, 5); },
                "scale");
  check_folding(
      [](auto& g, Value x) { return ops::scale(g, ops::scale(g, ops::scale(g, x, 2), 3, 1), 0.5); },
      "scale");
  check_folding([](auto& g, Value x) { return ops::exp(g, ops::scale(g, x, 1)); }, "exp");
  check_folding([](auto& g, Value x) { return ops::scale(g, ops::scale(g, x, 2), 0.5); }, "");
  check_folding([](auto& g, Value x) { return ops::scale(g, x, 1, 1); }, "scale");
}

TEST_CASE("fold: a scale that others read too is kept beside the merged one") {
  check_folding(
      [](auto& g, Value x) {
        const Value inner = ops::scale(g, x, 2);
        const Value exp = ops::exp(g, inner);
        return ops::mul(g, exp, ops::scale(g, inner, 3));
      },
      "scale exp scale mul");
}

TEST_CASE("fold: element-wise ops read through a broadcast, unless they need its shape") {
  const auto stretched = [](Graph& g, Value x) {
    return ops::broadcast_to(g, ops::sum(g, x, {0}, true), {2, 3});
  };
  check_folding([&](auto& g, Value x) { return ops::mul(g, x, stretched(g, x)); }, "sum mul");
  check_folding([&](auto& g, Value x) { return ops::exp(g, stretched(g, x)); },
                "sum broadcast_to exp");
  // One of two stretched operands must stay stretched.
  check_folding(
      [&](auto& g, Value x) {
        const Value s = stretched(g, x);
        return ops::add(g, s, s);
      },
      "sum broadcast_to add");
}

TEST_CASE("fold: a reshape of a reshape is one, or none") {
  check_folding(
      [](auto& g, Value x) {
        return ops::reshape(g, ops::reshape(g, ops::reshape(g, x, {6}), {3, 2}), {1, 6});
      },
      "reshape");
  check_folding(
      [](auto& g, Value x) {
        return ops::exp(g, ops::reshape(g, ops::reshape(g, x, {6}), {2, 3}));
      },
      "exp");
}

}  // namespace
}  // namespace keel::test

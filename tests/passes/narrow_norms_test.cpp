// Norms of bf16: what is cast, how often, and what other ops read.
#include "src/passes/narrow_norms.h"

#include <doctest/doctest.h>

#include "src/autodiff/gradient.h"
#include "src/graph/verify.h"
#include "src/ops/elementwise.h"
#include "src/ops/matmul.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/norm/rms_norm.h"
#include "src/ops/norm/weight_norm.h"
#include "src/ops/reduce.h"
#include "src/passes/bf16_products.h"
#include "tests/passes/count.h"

namespace keel::test {
namespace {

Graph norms_narrowed(const Graph& g) {
  Graph result = narrow_norms(g);
  verify(result, "narrow_norms");
  return result;
}

int casts_in(const Graph& g) { return count(g, elementwise_op(EwCode::kCast)); }

DType type_of_input(const Graph& g, const Node& node, int place) {
  return g.type(node.inputs[std::size_t(place)]).dtype;
}

TEST_CASE("narrow_norms: x is cast once for two norms, and others read their results widened") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 8}});
  const Value a = ops::layer_norm(g, x, {}), b = ops::rms_norm(g, x, {});
  g.mark_output("sum", ops::add(g, a, b));
  const Graph narrow = norms_narrowed(g);
  CHECK(casts_in(narrow) == 3);  // x, and both results
  for (int i = 0; i < narrow.size(); ++i) {
    const Node& node = narrow.node(i);
    if (node.op == &kLayerNorm || node.op == &kRmsNorm) {
      CHECK(type_of_input(narrow, node, 0) == DType::kBF16);
      CHECK(node.outputs[0].dtype == DType::kBF16);
      CHECK(node.is_bf16);
      CHECK(node.outputs[1].dtype == DType::kF32);  // a statistic
    }
    if (node.op == &elementwise_op(EwCode::kAdd)) {
      CHECK(type_of_input(narrow, node, 0) == DType::kF32);
      CHECK(type_of_input(narrow, node, 1) == DType::kF32);
    }
  }
}

TEST_CASE("narrow_norms: a norm reads the result of another without a cast between them") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 8}});
  g.mark_output("y", ops::rms_norm(g, ops::layer_norm(g, x, {}), {}));
  const Graph narrow = norms_narrowed(g);
  CHECK(casts_in(narrow) == 1);
  CHECK(narrow.type(narrow.outputs()[0].value).dtype == DType::kBF16);
}

TEST_CASE("narrow_norms: the backward takes dy in bf16, and gradients of gains stay float32") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 8}});
  const Value gain = g.parameter("gain", {DType::kF32, {8}}, nullptr);
  const Value y = ops::layer_norm(g, x, {gain, {}});
  const std::vector<Value> d =
      gradient(g, ops::sum(g, ops::square(g, y)), std::vector<Value>{x, gain});
  g.mark_output("dx", d[0]);
  g.mark_output("dgain", d[1]);
  const Graph narrow = norms_narrowed(g);
  for (int i = 0; i < narrow.size(); ++i) {
    const Node& node = narrow.node(i);
    if (node.op != &kLayerNormBackward) continue;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const std::string name = input_name(*node.op, int(k));
      if (!node.inputs[k].valid()) continue;
      CAPTURE(name);
      const bool is_narrow = name == "x" || name == "dy";
      CHECK(type_of_input(narrow, node, int(k)) == (is_narrow ? DType::kBF16 : DType::kF32));
    }
  }
  CHECK(narrow.type(narrow.outputs()[0].value).dtype == DType::kBF16);
  CHECK(narrow.type(narrow.outputs()[1].value).dtype == DType::kF32);
}

TEST_CASE("narrow_norms: products with bf16 factors and norms of weights stay as they are") {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {4, 8}}), v = g.input("v", {DType::kF32, {8, 8}});
  const Value w = ops::weight_norm(g, v, g.input("g", {DType::kF32, {8}}));
  g.mark_output("y", ops::matmul(g, x, w));
  const Graph products = bf16_products(g), both = norms_narrowed(products);
  CHECK(casts_in(both) == casts_in(products));
  CHECK(both.type(both.outputs()[0].value).dtype == DType::kF32);
}

}  // namespace
}  // namespace keel::test

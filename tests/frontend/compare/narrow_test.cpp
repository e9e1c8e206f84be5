// Steps with bf16 factors: honest ones agree with the reference, and a slight fault in one element
// of a product or of a cast is named.
#include <cmath>
#include <map>

#include "models/registry.h"
#include "src/autodiff/gradient.h"
#include "src/ops/attention.h"
#include "src/ops/conv2d.h"
#include "src/ops/elementwise.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/ops/matmul.h"
#include "src/ops/norm/layer_norm.h"
#include "src/ops/reduce.h"
#include "src/ops/relative_attention.h"
#include "src/passes/bf16_products.h"
#include "tests/frontend/compare/helpers.h"
#include "tests/frontend/compare/narrow_helpers.h"
#include "tests/support/each_bf16.h"
#include "tests/support/graph_runner.h"

namespace keel::compare {
namespace {

TEST_CASE("compare: steps with bf16 factors agree with the reference" *
          doctest::test_suite("slow")) {
  const test::EachBf16 each;
  const NarrowBackends backends;
  if (backends.all.empty()) return;
  for (const models::ModelEntry& model : models::all_models()) {
    for (const WalkMode mode : {WalkMode::kIsolated, WalkMode::kChained}) {
      CAPTURE(model.name);
      CAPTURE(choice_text(mode));
      const train::Job job = test::small_job({"train.compute=bf16"}, model.name);
      ModelSubject subject(*backends.reference, job);
      CompareOptions options{.walk = {}, .steps = 2};
      options.walk.mode = mode;
      check_agrees(compare(*backends.reference, backends.all, subject, options));
    }
  }
}

// A graph of which some factors are bf16, run node by node by a backend on the reference's inputs.
struct ComparedGraph {
  Graph graph;
  std::vector<std::vector<Tensor>> values;  // of the graph's nodes, as they are stored
  std::vector<NodeResult> compared;
  std::vector<NodeRun> runs;

  ComparedGraph(const NarrowBackends& backends, const Graph& wide) : graph(bf16_products(wide)) {
    for (int i = 0; i < graph.size(); ++i) take(backends, i);
  }

 private:
  void take(const NarrowBackends& backends, int i) {
    const Node& node = graph.node(i);
    compared.emplace_back();
    runs.emplace_back();
    values.emplace_back();
    if (node.kind == NodeKind::kInput) {
      const TensorType& type = node.outputs[0];
      values.back().push_back(is_floating(type.dtype)
                                  ? random_normal(type.shape, std::uint32_t(i)).to(type.dtype)
                                  : Tensor(type.dtype, type.shape));
      return;
    }
    if (node.kind == NodeKind::kConstant) {
      values.back().push_back(node.constant->clone());
      return;
    }
    std::vector<const Tensor*> inputs;
    for (Value v : node.inputs) {
      inputs.push_back(v.valid() ? &values[std::size_t(v.node)][std::size_t(v.port)] : nullptr);
    }
    compared.back() = reference_node(*backends.reference, graph, i, inputs, {});
    runs.back() = run_node(*backends.all[0], graph, i, inputs);
    for (std::size_t j = 0; j < node.outputs.size(); ++j) {
      values.back().push_back(compared.back().outputs[j].to(node.outputs[j].dtype));
    }
  }
};

Graph product() {
  Graph g;
  const Value a = g.input("a", {DType::kF32, {9, 2000}});
  g.mark_output("y", ops::matmul(g, a, g.input("b", {DType::kF32, {2000, 7}})));
  return g;
}

// The gradients of a sum of squares of y by all floating inputs.
Graph with_gradients(Graph g, Value y) {
  const Value loss = ops::sum(g, ops::square(g, y));
  std::vector<Value> wrt;
  for (Value v : g.leaves(NodeKind::kInput)) {
    if (is_floating(g.type(v).dtype)) wrt.push_back(v);
  }
  const std::vector<Value> d = gradient(g, loss, wrt);
  for (std::size_t i = 0; i < d.size(); ++i) g.mark_output(fmt::format("d{}", i), d[i]);
  return g;
}

// With both factors' gradients, whose factor dy is.
Graph small_product() {
  Graph g;
  const Value a = g.input("a", {DType::kF32, {9, 20}});
  const Value y = ops::matmul(g, a, g.input("b", {DType::kF32, {20, 17}}));
  return with_gradients(std::move(g), y);
}

Graph convolution() {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {2, 3, 9, 8}});
  const Value y = ops::conv2d(g, x, g.input("weight", {DType::kF32, {5, 3, 3, 3}}), {.padding = 1});
  return with_gradients(std::move(g), y);
}

Graph attention() {
  Graph g;
  const Shape shape{1, 40, 16};
  const auto input = [&](const char* name) { return g.input(name, {DType::kF32, shape}); };
  const Value q = input("q"), k = input("k"), v = input("v");
  const Value y = ops::attention(g, {.q = q, .k = k, .v = v}, {.heads = 1});
  return with_gradients(std::move(g), y);
}

Graph relative_attention() {
  Graph g;
  const auto input = [&](const char* name, const Shape& shape) {
    return g.input(name, {DType::kF32, shape});
  };
  const Shape sequence{1, 24, 16};
  const Value q = input("q", sequence), k = input("k", sequence), v = input("v", sequence);
  const Value p = input("p", {24, 16}), u = input("u", {16}), w = input("w", {16});
  const Value y =
      ops::relative_attention(g, {.q = q, .k = k, .v = v, .p = p, .u = u, .w = w}, {.heads = 2});
  return with_gradients(std::move(g), y);
}

Graph language_loss() {
  Graph g;
  const Value x = g.input("x", {DType::kF32, {40, 16}});
  const Value table = g.input("table", {DType::kF32, {50, 16}});
  const Value labels = g.input("labels", {DType::kI32, {40}});
  const Value sum = ops::linear_cross_entropy(g, {.x = x, .table = table, .labels = labels}).sum;
  return with_gradients(std::move(g), sum);
}

// Some elements that are not small beside the others.
std::vector<std::int64_t> ordinary_elements(const Tensor& y) {
  double squares = 0;
  for (std::int64_t e = 0; e < y.elements(); ++e) squares += y.at(e) * y.at(e);
  const double least = 0.5 * std::sqrt(squares / double(y.elements()));
  std::vector<std::int64_t> elements;
  const std::int64_t step = y.elements() / 60 + 1;
  for (std::int64_t e = 0; e < y.elements(); e += step) {
    if (std::abs(y.at(e)) > least) elements.push_back(e);
  }
  return elements;
}

std::vector<Tensor> copies(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(t.clone());
  return result;
}

// How many faults of 1 % in single elements of a node's output are planted, all of them named.
int named_faults(const ComparedGraph& of, int i, std::size_t port) {
  const NodeResult& compared = of.compared[std::size_t(i)];
  const std::vector<Tensor>& got = of.runs[std::size_t(i)].outputs;
  int planted = 0;
  for (const std::int64_t e : ordinary_elements(got[port])) {
    std::vector<Tensor> outputs = copies(got);
    outputs[port] = got[port].to(DType::kF64);
    outputs[port].as<double>()[std::size_t(e)] *= 1.01;
    outputs[port] = outputs[port].to(got[port].dtype());
    CHECK_FALSE(measured(outputs, compared.outputs, compared.bounds).within());
    ++planted;
  }
  return planted;
}

// Faults in all results of ops with bf16 factors, and of casts to bf16.
void check_faults(const NarrowBackends& backends, const Graph& wide, int least) {
  const ComparedGraph of(backends, wide);
  int planted = 0;
  for (int i = 0; i < of.graph.size(); ++i) {
    const Node& node = of.graph.node(i);
    if (node.kind != NodeKind::kOp) continue;
    CAPTURE(node.name);
    const NodeResult& compared = of.compared[std::size_t(i)];
    CHECK(measured(of.runs[std::size_t(i)].outputs, compared.outputs, compared.bounds).within());
    const bool is_cast = node.op == &elementwise_op(EwCode::kCast);
    if (!is_cast && factors_of(node).empty()) continue;
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      if (node.outputs[port].shape.elements() > 0) planted += named_faults(of, i, port);
    }
  }
  CHECK(planted > least);
}

TEST_CASE("compare: one element that is off by 1 % beside bf16 factors, or of a cast, is named") {
  const test::EachBf16 each;
  const NarrowBackends backends;
  if (backends.all.empty()) return;
  check_faults(backends, product(), 60);
  check_faults(backends, small_product(), 60);
  check_faults(backends, convolution(), 60);
  check_faults(backends, attention(), 200);
  check_faults(backends, relative_attention(), 200);
  check_faults(backends, language_loss(), 100);
}

TEST_CASE("compare: the reference of a bf16 product sees a fault of 1 % everywhere") {
  const test::EachBf16 each;
  const NarrowBackends backends;
  if (backends.all.empty()) return;
  const ComparedGraph of(backends, product());
  const NodeResult& compared = of.compared.back();
  CHECK(measured(of.runs.back().outputs, compared.outputs, compared.bounds).sensitivity <
        kSensitivityLimit);
}

// A result that its own kernel rounds differs from the reference's where their numbers lie on two
// sides of a tie, and then by a distance of bf16. Elsewhere the bound has no room for one, and
// nowhere for a fault of 1 %.
TEST_CASE("compare: results that kernels round themselves are within the bound") {
  Graph g;
  const Shape shape{8000, 96};
  const Value x = g.input("x", {DType::kF32, shape});
  const Value y = ops::layer_norm(g, x, {});
  g.narrow_result(y);
  const auto reference = make_backend("reference"), kernels = make_backend("onednn");
  const Tensor fed = random_normal(shape, 1).to(DType::kF32);
  const std::vector<const Tensor*> inputs{&fed, nullptr, nullptr};
  const NodeResult compared = reference_node(*reference, g, y.node, inputs, {});
  const Tensor got = run_node(*kernels, g, y.node, inputs).outputs[0].to(DType::kF64);
  int others = 0, outside = 0, loose = 0, hidden = 0;
  for (std::int64_t e = 0; e < got.elements(); ++e) {
    const double expected = compared.outputs[0].at(e), bound = compared.bounds[0].at(e);
    const double error = std::abs(got.at(e) - expected);
    others += error > 0;
    outside += !(error <= bound);
    loose += bound > 0x1p-100;
    // The permitted error of layer norm itself is less than 1 % of such results.
    hidden += std::abs(expected) > 1e-3 && bound > 0.01 * std::abs(expected);
  }
  CHECK(others > 0);
  CHECK(outside == 0);
  CHECK(loose < got.elements() / 50);
  CHECK(hidden == 0);
}

TEST_CASE("compare: factors that the instructions take as 0 are within the bound") {
  Graph g;
  const Value a = g.input("a", {DType::kBF16, {1, 2}}), b = g.input("b", {DType::kBF16, {2, 1}});
  const Value y = ops::matmul(g, a, b);
  const NarrowBackends backends;
  const Tensor tiny = Tensor::of<double>({1, 2}, {0x1p-130, 0x1p-120}).to(DType::kBF16);
  const Tensor large = Tensor::of<double>({2, 1}, {0x1p100, 1}).to(DType::kBF16);
  const std::vector<const Tensor*> inputs{&tiny, &large, nullptr};
  const NodeResult compared = reference_node(*backends.reference, g, y.node, inputs, {});
  CHECK(compared.outputs[0].at(0) == 0x1p-30 + 0x1p-120);
  CHECK(compared.bounds[0].at(0) >= 0x1p-30);
}

// dS is 2^39 and -2^39, so dq, their sum with k, is 2^-92: of two factors that may count as 0.
TEST_CASE("compare: so are such factors in the sums of attention's backward") {
  using In = AttentionInput;
  Graph g;
  const Shape one{1, 1, 1}, two{1, 2, 1};
  const Value q = g.input("q", {DType::kF32, one}), k = g.input("k", {DType::kF32, two}),
              v = g.input("v", {DType::kF32, two});
  const Value y = ops::attention(g, {.q = q, .k = k, .v = v}, {.heads = 1});
  const Graph narrow = bf16_products(with_gradients(std::move(g), y));
  int node = 0;
  while (narrow.node(node).op != &kAttentionBackward) ++node;
  std::map<int, Tensor> given;
  given[In::kQ] = Tensor::of<double>(one, {1});
  given[In::kK] = Tensor::of<double>(two, {0x1p-130, 0x1p-131});
  given[In::kV] = Tensor::of<double>(two, {0x1p40, -0x1p40});
  given[In::kY] = Tensor::of<double>(one, {0});
  given[In::kDy] = Tensor::of<double>(one, {1});
  std::vector<const Tensor*> inputs;
  for (std::size_t i = 0; i < narrow.node(node).inputs.size(); ++i) {
    const Value input = narrow.node(node).inputs[i];
    if (i == In::kLse) given[In::kLse] = Tensor::of<double>(narrow.shape(input), {std::log(2.0)});
    const auto found = given.find(int(i));
    if (found != given.end()) found->second = found->second.to(narrow.type(input).dtype);
    inputs.push_back(found == given.end() ? nullptr : &found->second);
  }
  const auto reference = make_backend("reference");
  const NodeResult compared = reference_node(*reference, narrow, node, inputs, {});
  REQUIRE(compared.outputs[AttentionGradient::kDq].at(0) == doctest::Approx(0x1p-92).epsilon(1e-6));
  CHECK(compared.bounds[AttentionGradient::kDq].at(0) >= 0x1p-92);
}

}  // namespace
}  // namespace keel::compare

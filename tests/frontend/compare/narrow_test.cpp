// Steps with bf16 factors: honest ones agree with the judge, and a slight fault in one element of
// a product or of a cast is named.
#include <cmath>

#include "models/registry.h"
#include "src/ops/matmul.h"
#include "src/passes/narrow_products.h"
#include "tests/frontend/compare/helpers.h"
#include "tests/frontend/compare/narrow_helpers.h"
#include "tests/support/each_bf16.h"
#include "tests/support/graph_runner.h"

namespace keel::compare {
namespace {

TEST_CASE("compare: steps with bf16 factors agree with the judge" * doctest::test_suite("slow")) {
  const NarrowBackends backends;
  if (backends.all.empty()) return;
  for (const models::ModelEntry& model : models::all_models()) {
    for (const WalkMode mode : {WalkMode::kIsolated, WalkMode::kChained}) {
      CAPTURE(model.name);
      CAPTURE(choice_text(mode));
      const train::Job job = test::small_job({"train.compute=bf16"}, model.name);
      ModelSubject subject(*backends.judge, job);
      CompareOptions options{.walk = {}, .steps = 2};
      options.walk.mode = mode;
      check_agrees(compare(*backends.judge, backends.all, subject, options));
    }
  }
}

// A product of bf16 factors and its casts, run by a backend on the judge's inputs.
struct JudgedProduct {
  Graph graph;
  std::vector<Tensor> values;  // of the graph's nodes, in float64
  std::vector<Judgement> judged;
  std::vector<NodeRun> runs;

  explicit JudgedProduct(const NarrowBackends& backends) {
    Graph wide;
    const Value a = wide.input("a", {DType::kF32, {9, 2000}});
    const Value b = wide.input("b", {DType::kF32, {2000, 7}});
    wide.mark_output("y", ops::matmul(wide, a, b));
    graph = narrow_products(wide);
    for (int i = 0; i < graph.size(); ++i) take(backends, i);
  }

 private:
  void take(const NarrowBackends& backends, int i) {
    const Node& node = graph.node(i);
    judged.emplace_back();
    runs.emplace_back();
    if (node.kind == NodeKind::kInput) {
      values.push_back(random_normal(node.outputs[0].shape, std::uint32_t(i)).to(DType::kF32));
      return;
    }
    std::vector<const Tensor*> inputs;
    for (Value v : node.inputs) {
      inputs.push_back(v.valid() ? &values[std::size_t(v.node)] : nullptr);
    }
    judged.back() = judge_node(*backends.judge, graph, i, inputs, {});
    runs.back() = run_node(*backends.all[0], graph, i, inputs);
    values.push_back(judged.back().outputs[0].to(node.outputs[0].dtype));
  }
};

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

TEST_CASE("compare: one element of a bf16 product or cast that is off by 1 % is named") {
  const test::EachBf16 each;
  const NarrowBackends backends;
  if (backends.all.empty()) return;
  const JudgedProduct of(backends);
  int planted = 0;
  for (int i = 0; i < of.graph.size(); ++i) {
    if (of.graph.node(i).kind != NodeKind::kOp) continue;
    CAPTURE(of.graph.node(i).name);
    const Judgement& judged = of.judged[std::size_t(i)];
    const Tensor& got = of.runs[std::size_t(i)].outputs[0];
    std::vector<Tensor> outputs;
    outputs.push_back(got.clone());
    CHECK(measured(outputs, judged.outputs, judged.bounds).within());
    for (const std::int64_t e : ordinary_elements(got)) {
      outputs[0] = got.to(DType::kF64);
      outputs[0].as<double>()[std::size_t(e)] *= 1.01;
      outputs[0] = outputs[0].to(got.dtype());
      CHECK_FALSE(measured(outputs, judged.outputs, judged.bounds).within());
      ++planted;
    }
  }
  CHECK(planted > 60);
}

TEST_CASE("compare: the judge of a bf16 product sees a fault of 1 % everywhere") {
  const test::EachBf16 each;
  const NarrowBackends backends;
  if (backends.all.empty()) return;
  const JudgedProduct of(backends);
  const Judgement& judged = of.judged.back();
  std::vector<Tensor> outputs;
  outputs.push_back(of.runs.back().outputs[0].clone());
  CHECK(measured(outputs, judged.outputs, judged.bounds).power < kBlindPower);
}

TEST_CASE("compare: factors that the instructions take as 0 are within the bound") {
  Graph g;
  const Value a = g.input("a", {DType::kBF16, {1, 2}}), b = g.input("b", {DType::kBF16, {2, 1}});
  const Value y = ops::matmul(g, a, b);
  const NarrowBackends backends;
  const Tensor tiny = Tensor::of<double>({1, 2}, {0x1p-130, 0x1p-120}).to(DType::kBF16);
  const Tensor large = Tensor::of<double>({2, 1}, {0x1p100, 1}).to(DType::kBF16);
  const std::vector<const Tensor*> inputs{&tiny, &large, nullptr};
  const Judgement judged = judge_node(*backends.judge, g, y.node, inputs, {});
  CHECK(judged.outputs[0].at(0) == 0x1p-30 + 0x1p-120);
  CHECK(judged.bounds[0].at(0) >= 0x1p-30);
}

}  // namespace
}  // namespace keel::compare

#include "tests/support/narrow_nodes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/ops/elementwise.h"
#include "src/ops/norm/norm_ops.h"
#include "src/ops/norm/weight_norm.h"
#include "src/ops/norm_noise.h"
#include "src/runtime/run_node.h"

namespace keel::test {
namespace {

using Operands = std::vector<std::optional<Tensor>>;  // of a node, by place; some are absent

bool is_norm(const OpInfo& op) {
  if (&op == &kWeightNorm || &op == &kWeightNormBackward) return false;
  return std::ranges::find(norm_ops(), &op) != norm_ops().end() || &op == &kNormNoise ||
         &op == &kNormNoiseBackward;
}

bool is_read_narrow(const OpInfo& op, std::size_t place) {
  const std::string name = input_name(op, int(place));
  return name == "x" || name == "dy";
}

// A graph whose inputs are the operands of its last node.
struct Lone {
  Graph graph;
  std::vector<Value> inputs;
  Value result;

  Lone(const Node& node, const Operands& operands, bool is_narrow) {
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i]) {
        inputs.emplace_back();
        continue;
      }
      TensorType type = operands[i]->type();
      if (is_narrow && is_read_narrow(*node.op, i)) type.dtype = DType::kBF16;
      inputs.push_back(graph.input(fmt::format("x{}", i), type));
    }
    result = graph.add(*node.op, inputs, node.attrs);
  }
  std::vector<Tensor> run(Backend& backend, const Operands& operands) const {
    std::vector<const Tensor*> values;
    for (const auto& operand : operands) values.push_back(operand ? &*operand : nullptr);
    NodeRun run = run_node(backend, graph, result.node, values);
    REQUIRE(run.refusal == "");
    return std::move(run.outputs);
  }
};

void check_same(const Tensor& got, const Tensor& expected) {
  REQUIRE(got.type() == expected.type());
  CHECK(std::memcmp(got.data(), expected.data(), std::size_t(expected.bytes())) == 0);
}

// x and dy are cast to bf16, the result is rounded, so that it may take dy's place, and widened.
void check_in_place(Backend& backend, const Node& node, const Operands& operands,
                    const Tensor& expected) {
  Graph g;
  Feeds feeds;
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) {
      inputs.emplace_back();
      continue;
    }
    const std::string name = fmt::format("x{}", i);
    feeds[name] = operands[i]->clone();
    const Value fed = g.input(name, operands[i]->type());
    inputs.push_back(is_read_narrow(*node.op, i) ? ops::cast(g, fed, DType::kBF16) : fed);
  }
  const Value result = g.add(*node.op, inputs, node.attrs);
  g.narrow_result(result);
  g.mark_output("result", ops::cast(g, result, DType::kF32));
  check_same(run_graph(backend, g, feeds).at("result"), expected.to(DType::kF32));
}

void check_node(Backend& backend, const Node& node, const Operands& operands) {
  CAPTURE(node.op->name);
  const std::vector<Tensor> wide = Lone(node, operands, false).run(backend, operands);
  const bool is_rounded = wide[0].dtype() == DType::kF32;
  const Tensor rounded = is_rounded ? wide[0].to(DType::kBF16) : wide[0].clone();
  for (const bool reads : {false, true}) {
    for (const bool stores : {false, true}) {
      if (stores && !is_rounded) continue;
      CAPTURE(reads);
      CAPTURE(stores);
      Lone lone(node, operands, reads);
      if (stores) lone.graph.narrow_result(lone.result);
      const std::vector<Tensor> got = lone.run(backend, operands);
      REQUIRE(got.size() == wide.size());
      for (std::size_t j = 0; j < wide.size(); ++j) {
        CAPTURE(j);
        check_same(got[j], j == 0 && stores ? rounded : wide[j]);
      }
    }
  }
  if (is_rounded && !node.op->in_place.empty()) check_in_place(backend, node, operands, rounded);
}

Tensor rounded_if(bool applies, const Tensor& value) {
  return applies ? value.to(DType::kBF16).to(value.dtype()) : value.clone();
}

}  // namespace

int check_narrow_nodes(Backend& backend, const Graph& graph, const Feeds& feeds) {
  std::vector<std::vector<Tensor>> values(std::size_t(graph.size()));
  int compared = 0;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind == NodeKind::kInput)
      values[std::size_t(i)].push_back(feeds.at(node.name).clone());
    if (node.kind == NodeKind::kConstant) values[std::size_t(i)].push_back(node.constant->clone());
    if (node.kind != NodeKind::kOp) continue;
    Operands operands;
    std::vector<const Tensor*> inputs;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Value v = node.inputs[k];
      inputs.push_back(v.valid() ? &values[std::size_t(v.node)][std::size_t(v.port)] : nullptr);
      const bool is_narrow = is_norm(*node.op) && is_read_narrow(*node.op, k);
      operands.push_back(v.valid() ? std::optional(rounded_if(is_narrow, *inputs[k]))
                                   : std::nullopt);
    }
    NodeRun run = run_node(backend, graph, i, inputs);
    REQUIRE(run.refusal == "");
    values[std::size_t(i)] = std::move(run.outputs);
    if (!is_norm(*node.op) || node.op->name.starts_with("merge")) continue;
    check_node(backend, node, operands);
    ++compared;
  }
  return compared;
}

}  // namespace keel::test

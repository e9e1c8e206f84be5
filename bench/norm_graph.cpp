#include "bench/norm_graph.h"

#include "frontend/nn/norm.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"

namespace keel::bench {
namespace {

constexpr const char* kScope = "norm";

bool is_of_norm(const Node& node) { return node.name.starts_with("norm/"); }
bool is_backward(const Node& node) { return node.name.find(".backward/") != std::string::npos; }

}  // namespace

bool is_norm_forward(const Node& node) { return is_of_norm(node) && !is_backward(node); }
bool is_norm_backward(const Node& node) { return is_of_norm(node) && is_backward(node); }

Graph norm_graph(const std::string& name, const Shape& shape) {
  Graph graph;
  nn::Net net{graph};
  const Value x = graph.input("x", {DType::kF32, shape});
  const Value dy = graph.input("dy", {DType::kF32, shape});
  const Value y = nn::Norm::parse(name)(net, kScope, x);
  std::vector<Value> wrt{x};
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.node(i).kind == NodeKind::kParameter) wrt.push_back({i});
  }
  graph.mark_output("y", y);
  const std::vector<Value> gradients =
      gradient(graph, ops::sum(graph, ops::mul(graph, y, dy)), wrt);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    graph.mark_output("gradient of " + graph.node(wrt[i]).name, gradients[i]);
  }
  return run_passes(graph);
}

}  // namespace keel::bench

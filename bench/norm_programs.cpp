#include "bench/norm_programs.h"

#include "bench/part.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/passes/pipeline.h"

namespace keel::bench {
namespace {

constexpr const char* kScope = "norm";
constexpr int kSteps = 3;  // before results are taken, so that state has moved
constexpr CompileOptions kAsItIs{.optimize = false, .guard = {}};

bool is_of_norm(const Node& node) { return node.name.starts_with("norm/"); }
bool is_backward(const Node& node) { return node.name.find(".backward/") != std::string::npos; }

// The graph with what the inputs "node:port" of a part of it stand for as outputs of these names.
Graph exposing(const Graph& graph, const Graph& part) {
  Graph result = graph;
  for (int i = 0; i < graph.size(); ++i) {
    for (int port = 0; port < int(graph.node(i).outputs.size()); ++port) {
      const std::string name = fmt::format("{}:{}", graph.node(i).name, port);
      if (part.find_leaf(name).valid()) result.mark_output(name, {i, port});
    }
  }
  return result;
}

// Feeds the program of a part with what the whole was fed with, or has just computed.
void feed_part(Program& program, const Program& whole, const Feeds& feeds) {
  for (int i = 0; i < program.graph().size(); ++i) {
    const Node& node = program.graph().node(i);
    if (node.kind != NodeKind::kInput) continue;
    const auto fed = feeds.find(node.name);
    if (fed != feeds.end()) {
      program.feed(node.name, fed->second);
    } else {
      program.feed(node.name, whole.fetch(node.name, true));
    }
  }
}

}  // namespace

bool is_norm_forward(const Node& node) { return is_of_norm(node) && !is_backward(node); }
bool is_norm_backward(const Node& node) { return is_of_norm(node) && is_backward(node); }

Graph norm_graph(const nn::Norm& norm, const Shape& shape, bool has_residual) {
  Graph graph;
  nn::Net net{graph};
  net.step = net.first_row = graph.constant(Tensor(DType::kI32, {}));
  const Value x = graph.input("x", {DType::kF32, shape});
  const Value dy = graph.input("dy", {DType::kF32, shape});
  Value sum = x;
  if (has_residual) {
    const Value residual = graph.input("residual", {DType::kF32, shape});
    const Graph::Scope scope = graph.scope(kScope);
    sum = ops::add(graph, x, residual);
  }
  const Value y = norm.alone(net, kScope, sum);
  std::vector<Value> wrt{x};
  for (Value parameter : graph.leaves(NodeKind::kParameter)) wrt.push_back(parameter);
  graph.mark_output("y", y);
  Value loss = ops::sum(graph, ops::mul(graph, y, dy));
  if (has_residual) {
    graph.mark_output("sum", sum);
    const Value dsum = graph.input("dsum", {DType::kF32, shape});
    loss = ops::add(graph, loss, ops::sum(graph, ops::mul(graph, sum, dsum)));
  }
  const Gradients gradients = differentiate(graph, loss, wrt, Unreached::kZero);
  net.update(gradients.states);
  for (std::size_t i = 0; i < wrt.size(); ++i) {
    graph.mark_output("gradient of " + graph.node(wrt[i]).name, gradients.of[i]);
  }
  return run_passes(graph);
}

NormPrograms::NormPrograms(Backend& backend, const Graph& graph, const Feeds& feeds)
    : forward_graph(part_of(graph, is_norm_forward)),
      backward_graph(part_of(graph, is_norm_backward)),
      both_graph(part_of(graph, is_of_norm)),
      variables(backend, 1),
      forward(backend, variables, forward_graph, kAsItIs),
      backward(backend, variables, backward_graph, kAsItIs),
      both(backend, variables, both_graph, kAsItIs) {
  Program whole(backend, variables, exposing(graph, backward_graph), kAsItIs);
  for (const auto& [name, value] : feeds) whole.feed(name, value);
  for (int step = 0; step < kSteps; ++step) whole.run();
  for (const NamedValue& output : graph.outputs()) {
    results.push_back({output.name, probe(whole.fetch(output.name))});
  }
  for (Program* program : {&forward, &backward, &both}) feed_part(*program, whole, feeds);
}

PeerCase NormPrograms::peer_case(const nn::Norm& norm, const Feeds& feeds) const {
  PeerCase task{
      .what = {{"norm", norm_facts(norm)}, {"steps", kSteps}}, .given = {}, .expected = results};
  for (const char* name : {"x", "dy", "residual", "dsum"}) {
    const auto fed = feeds.find(name);
    if (fed != feeds.end()) task.given.push_back({name, fed->second.clone()});
  }
  for (const auto& [name, variable] : variables.all()) {
    if (variable.kind != NodeKind::kParameter) continue;
    task.given.push_back({name, variables.read(name), true});
  }
  return task;
}

}  // namespace keel::bench

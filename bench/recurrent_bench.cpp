#include "bench/recurrent_bench.h"

#include "backends/reference/backend.h"
#include "frontend/nn/recurrent.h"
#include "frontend/optim/clip.h"
#include "frontend/optim/optimizer.h"
#include "src/autodiff/gradient.h"
#include "src/core/choice.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/passes/bf16_products.h"

namespace keel::bench {
namespace {

using nlohmann::json;

constexpr optim::OptimizerOptions kAdam{};

Value layer(nn::Net& net, const RecurrentCase& c, const std::string& name, Value x) {
  const nn::CellOptions options{.norms = nn::cell_norms(c.norm)};
  if (c.cell == Cell::kLstm) return nn::Lstm(net, name, c.width, c.width, options)(x).h;
  return nn::Gru(net, name, c.width, c.width, options)(x).h;
}

Tensor random_sequence(const RecurrentCase& c) {
  Tensor x(DType::kF32, {c.steps, c.rows, c.width});
  const Philox random(1, stream_of("x"));
  std::uint64_t element = 0;
  for (float& value : x.as<float>()) value = float(random.normal(element++));
  return x;
}

void feed(Program& step, const RecurrentCase& c) {
  step.feed("x", random_sequence(c));
  step.feed("lr", Tensor::scalar(float(kLearningRate)));
  step.feed("step", Tensor(DType::kI32, {}));
}

json facts(const RecurrentCase& c) {
  const auto number = [](std::int64_t n) { return fmt::format("{}", n); };
  return {{"model", "recurrent"},
          {"options", {{"cell", choice_text(c.cell)}, {"layers", number(c.layers)}}},
          {"norm", norm_facts(c.norm)},
          {"optimizer",
           {{"name", "adam"},
            {"lr", kLearningRate},
            {"weight_decay", 0},
            {"beta1", kAdam.beta1},
            {"beta2", kAdam.beta2},
            {"eps", kAdam.eps}}},
          {"clip_limit", json()},
          {"is_exact", true}};
}

// The float64 results of a step from those parameters: through many time steps roundings grow, so
// that two right results in float32 may differ by more than a wrong one does.
std::vector<PeerCase::Expected> exact_results(const std::vector<PeerCase::Given>& parameters,
                                              const RecurrentCase& c) {
  reference::ReferenceBackend reference;
  const Graph graph = recurrent_step(c);
  Variables variables(reference, 1);
  variables.declare(graph);
  for (const auto& parameter : parameters) variables.write(parameter.name, parameter.value);
  Program step(reference, variables, graph, {.guard = "grad_norm"});
  feed(step, c);
  step.run();
  return {{"loss", probe(step.fetch("loss"))}, {"grad_norm", probe(step.fetch("grad_norm"))}};
}

PeerCase peer_case(Backend& backend, const RecurrentCase& c) {
  PeerCase task{.what = facts(c), .given = {}, .expected = {}, .is_narrow = c.is_narrow};
  Variables variables(backend, 1);
  variables.declare(recurrent_step(c));
  for (const auto& [name, variable] : variables.all()) {
    if (variable.kind != NodeKind::kParameter) continue;
    task.given.push_back({name, variables.read(name), true});
  }
  task.expected = exact_results(task.given, c);
  task.given.push_back({"x", random_sequence(c)});
  return task;
}

}  // namespace

Graph recurrent_step(const RecurrentCase& c) {
  Graph g;
  nn::Net net{.graph = g, .seed = 1};
  Value x = g.input("x", {DType::kF32, {c.steps, c.rows, c.width}});
  for (std::int64_t i = 0; i < c.layers; ++i) x = layer(net, c, fmt::format("layer{}", i), x);
  const Value loss = ops::mean(g, ops::square(g, x));
  const std::vector<Value> parameters = g.leaves(NodeKind::kParameter);
  const auto [gradients, states] = differentiate(g, loss, parameters, Unreached::kZero);
  net.update(states);
  const auto clipped = optim::clip_gradients(g, gradients, {.kind = optim::Clipping::kNone});
  optim::apply_optimizer(
      g, parameters, clipped.gradients,
      {g.input("lr", {DType::kF32, {}}), clipped.scale, g.input("step", {DType::kI32, {}})}, kAdam);
  g.mark_output("loss", loss);
  g.mark_output("grad_norm", clipped.norm);
  return c.is_narrow ? bf16_products(g) : std::move(g);
}

StepBench bench_recurrent(Backend& backend, const RecurrentCase& c, int rounds,
                          LibraryPeer* library) {
  const Graph graph = recurrent_step(c);
  return measure_step(backend,
                      {.graph = graph,
                       .feed = [&](Program& step) { feed(step, c); },
                       .peer_case = [&] { return peer_case(backend, c); }},
                      rounds, library);
}

}  // namespace keel::bench

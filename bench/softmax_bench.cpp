#include "bench/softmax_bench.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/peak_memory.h"
#include "src/autodiff/gradient.h"
#include "src/core/rng.h"
#include "src/ops/elementwise.h"
#include "src/ops/linear_cross_entropy.h"
#include "src/runtime/program.h"

namespace keel::bench {
namespace {

using nlohmann::json;

// Large enough that the softmax prefers some words, small enough that it has not learned them.
constexpr double kDeviation = 0.1;

void draw_normal(Tensor& value, const Philox& random) {
  std::uint64_t element = 0;
  for (float& x : value.as<float>()) x = float(kDeviation * random.normal(element++));
}

Tensor labels(const SoftmaxCase& c) {
  Tensor target(DType::kI32, {c.rows});
  const Philox random(1, stream_of("target"));
  for (std::int64_t row = 0; row < c.rows; ++row) {
    const double rank = std::exp(random.uniform(std::uint64_t(row)) * std::log(double(c.words)));
    target.as<std::int32_t>()[std::size_t(row)] =
        std::int32_t(std::min(std::int64_t(rank), c.words - 1));
  }
  return target;
}

json facts(const SoftmaxCase& c) {
  return {{"model", "softmax"},
          {"options",
           {{"cutoffs", fmt::format("{}", fmt::join(c.cutoffs, ","))},
            {"label_smoothing", fmt::format("{}", c.label_smoothing)}}},
          {"norm", norm_facts(nn::Norm::parse("none"))},
          {"optimizer", {{"name", "none"}, {"lr", 0}, {"weight_decay", 0}}},
          {"clip_limit", json()}};
}

class Step {
 public:
  Step(Backend& backend, Variables& variables, const SoftmaxCase& c)
      : program_(backend, variables, softmax_step(c)) {
    program_.feed("target", labels(c));
  }
  void run() { program_.run(); }
  double loss() const { return program_.scalar("loss"); }
  double gradient_norm(const Variables& variables) const {
    double sum = 0;
    for (const auto& [name, variable] : variables.all()) {
      const Tensor gradient = program_.fetch("d_" + name);
      for (const float g : gradient.as<float>()) sum += double(g) * double(g);
    }
    return std::sqrt(sum);
  }

 private:
  Program program_;
};

PeerCase peer_case(const Variables& variables, const SoftmaxCase& c, const Step& step) {
  PeerCase task{.what = facts(c), .given = {}, .expected = {}};
  for (const auto& [name, variable] : variables.all()) {
    task.given.push_back({name, variables.read(name), true});
  }
  task.given.push_back({"target", labels(c)});
  task.expected = {{"loss", {step.loss()}}, {"grad_norm", {step.gradient_norm(variables)}}};
  return task;
}

}  // namespace

Graph softmax_step(const SoftmaxCase& c) {
  Graph g;
  const auto parameter = [&](const std::string& name, const Shape& shape) {
    return g.parameter(name, {DType::kF32, shape}, draw_normal);
  };
  ops::LinearLossOperands operands{.x = parameter("x", {c.rows, c.width}),
                                   .table = parameter("words", {c.words, c.width}),
                                   .bias = parameter("logits/bias", {c.words}),
                                   .labels = g.input("target", {DType::kI32, {c.rows}})};
  if (const std::int64_t clusters = std::ssize(c.cutoffs); clusters > 0) {
    operands.clusters = parameter("clusters/weight", {clusters, c.width});
    operands.cluster_bias = parameter("clusters/bias", {clusters});
  }
  const Value sum = ops::linear_cross_entropy(
                        g, operands, {.cutoffs = c.cutoffs, .label_smoothing = c.label_smoothing})
                        .sum;
  const Value loss = ops::scale(g, sum, 1 / double(c.rows));
  const std::vector<Value> parameters = g.leaves(NodeKind::kParameter);
  const auto [gradients, states] = differentiate(g, loss, parameters, Unreached::kZero);
  g.mark_output("loss", loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    g.mark_output("d_" + g.node(parameters[i].node).name, gradients[i]);
  }
  return g;
}

SoftmaxBench bench_softmax(Backend& backend, const SoftmaxCase& c, int rounds,
                           LibraryPeer* library) {
  Variables variables(backend, 1);
  variables.declare(softmax_step(c));
  SoftmaxBench result{.step = {}, .flop = 6.0 * double(c.rows) * double(c.words) * double(c.width)};
  std::unique_ptr<Step> step;
  const std::int64_t growth = peak_growth([&] {
    step = std::make_unique<Step>(backend, variables, c);
    step->run();
    step->loss();  // waits for it
  });
  const bool is_of_process = backend.name() != "cuda";
  if (is_of_process) result.bytes = growth;
  const std::function<void()> body = [&] { step->run(); };
  std::vector<Sampler> samplers{[&](int n) { return sample_in_turns({&body, 1}, n, 1, &backend); }};
  std::vector<PeerMode> modes;
  if (library != nullptr) {
    modes = library->set_up(peer_case(variables, c, *step));
    result.peer_refusal = refusals_of(modes);
    if (library->has_modes()) {
      samplers.push_back([&](int n) { return library->sample(1, n, 1); });
    }
  }
  const std::vector<Timing> times = time_in_blocks(samplers, rounds);
  result.step = times[0];
  if (samplers.size() > 1) {
    result.peer = peer_times(modes, times[0], std::span(times).subspan(1));
    if (is_of_process) result.peer_bytes = library->peak_bytes();
  }
  return result;
}

}  // namespace keel::bench

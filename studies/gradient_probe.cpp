#include "studies/gradient_probe.h"

#include <algorithm>
#include <cmath>

#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "studies/lab.h"
#include "studies/summary.h"

namespace keel::study {
namespace {

std::string gradient_output(const std::string& parameter) { return "gradient/" + parameter; }

Weights moved(const Weights& theta, double factor, const Weights& direction) {
  Weights result(theta.size());
  std::ranges::transform(theta, direction, result.begin(),
                         [factor](double t, double d) { return t + factor * d; });
  return result;
}

}  // namespace

GradientProbe::GradientProbe(Backend& backend, const train::Job& job)
    : backend_(backend),
      job_(job),
      feeder_(job.network()),
      variables_(backend, 0),
      carries_(backend),
      programs_(backend, variables_, [this](const task::Sizes& sizes) { return build(sizes); },
                {.carries = &carries_}) {
  const Graph graph = build(job.network().sizes(job.train().batch));
  variables_.declare(graph);
  std::size_t end = 0;
  for (const Value leaf : graph.leaves(NodeKind::kParameter)) {
    const Node& node = graph.node(leaf);
    if (!node.facts.trains) continue;
    parts_.push_back({node.name, graph.shape(leaf)});
    const std::string layer = node.name.substr(0, node.name.find('/'));
    if (layers_.empty() || layers_.back().name != layer) layers_.push_back({layer, end, end});
    end += std::size_t(graph.shape(leaf).elements());
    layers_.back().end = end;
  }
  for (const Value leaf : graph.leaves(NodeKind::kState)) {
    if (!graph.node(leaf).is_cached) states_.push_back(graph.node(leaf).name);
  }
}

void GradientProbe::take(const train::ObservedUpdate& update) {
  step_ = update.place.step;
  const task::Batch& batch =
      update.rows.at(static_cast<std::uint32_t>(update.place.epoch), update.place.batch);
  batch_ = {.sizes = batch.sizes, .values = {}, .rows = batch.rows, .items = batch.items};
  for (const Tensor& value : batch.values) batch_.values.push_back(value.clone());
  programs_.at(batch_.sizes);  // so that there are carries to be set
  carries_.write(update.carries.read());
  for (const std::string& state : states_) {
    variables_.write(state, update.variables.read(state, true));
  }
}

Graph GradientProbe::build(const task::Sizes& sizes) {
  Graph g;
  nn::Net net = train::sampling_net(g, job_, nn::Mode::kProbe);
  const task::Inputs inputs = train::add_inputs(g, job_.network(), sizes);
  const Value sum = job_.network().build(net, inputs).loss_sum;
  const Value loss = ops::mul(g, sum, g.input("weight", {DType::kF32, {}}));
  const std::vector<Value> parameters = g.leaves(NodeKind::kParameter);
  const std::vector<Value> gradients = gradient(g, loss, parameters);
  g.mark_output("loss", loss);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    g.mark_output(gradient_output(g.node(parameters[i]).name), ops::scale(g, gradients[i], 1));
  }
  return g;
}

Weights GradientProbe::read(const Variables& variables) const {
  Weights weights;
  for (const Part& part : parts_) {
    const Tensor value = variables.read(part.name, true).to(DType::kF64);
    weights.insert(weights.end(), value.as<double>().begin(), value.as<double>().end());
  }
  return weights;
}

Slope GradientProbe::at(const Weights& weights) {
  Program& program = programs_.at(batch_.sizes);
  auto from = weights.begin();
  for (const Part& part : parts_) {
    Tensor value(DType::kF64, part.shape);
    const auto end = from + value.elements();
    std::copy(from, end, value.as<double>().begin());
    variables_.write(part.name, value);
    from = end;
  }
  feeder_.feed(program, batch_, {.step = step_});
  program.run();
  Slope slope{program.scalar("loss"), {}};
  for (const Part& part : parts_) {
    const Tensor d = program.fetch(gradient_output(part.name), true).to(DType::kF64);
    slope.gradient.insert(slope.gradient.end(), d.as<double>().begin(), d.as<double>().end());
  }
  return slope;
}

Landscape landscape_along(const SlopeAt& slope_at, const Weights& theta, double rate) {
  constexpr int kSizes = 10;
  constexpr double kFirst = 0.5, kOctaves = 3;
  const Slope here = slope_at(theta);
  const double size = length(here.gradient);
  Landscape result{.loss_min = INFINITY, .loss_max = -INFINITY, .gradient_min = INFINITY};
  for (int k = 0; k < kSizes; ++k) {
    const double eta = rate * kFirst * std::exp2(kOctaves * k / (kSizes - 1));
    const Slope there = slope_at(moved(theta, -eta, here.gradient));
    const double change = length(differences(here.gradient, there.gradient));
    take_smallest(result.loss_min, there.loss);
    take_largest(result.loss_max, there.loss);
    take_smallest(result.gradient_min, change);
    take_largest(result.gradient_max, change);
    take_largest(result.beta, change / (eta * size));
    take_largest(result.lipschitz, std::abs(there.loss - here.loss) / (eta * size));
  }
  return result;
}

}  // namespace keel::study

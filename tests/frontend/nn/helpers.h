// Helpers of the tests of layers: a network of one layer with a loss, trained for one run.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>

#include "backends/reference/backend.h"
#include "frontend/nn/net.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/runtime/program.h"
#include "tests/support/graph_runner.h"

namespace keel::nn {

using Layer = std::function<Value(Net&, Value x)>;

// y = layer(x) on the reference backend. Outputs: "y", and per parameter p of the layer its
// gradient "d p" of the sum of y times fixed random numbers.
struct LayerRun {
  reference::ReferenceBackend backend;
  Graph graph;
  Variables variables{backend, 7};
  std::vector<std::string> parameters, states;
  std::unique_ptr<Program> program;

  LayerRun(const Layer& layer, const Shape& shape, Mode mode = Mode::kTrain) {
    Net net{.graph = graph, .mode = mode};
    net.step = graph.input("step", {DType::kI32, {}});
    net.first_row = graph.input("first_row", {DType::kI32, {}});
    const Value x = graph.input("x", {DType::kF32, shape});
    const Value y = layer(net, x);
    const std::vector<Value> leaves = graph.leaves(NodeKind::kParameter);
    for (Value parameter : leaves) parameters.push_back(graph.node(parameter).name);
    for (Value state : graph.leaves(NodeKind::kState)) states.push_back(graph.node(state).name);
    graph.mark_output("y", ops::scale(graph, y, 1));
    const Value weights = graph.constant(test::random_normal(graph.shape(y), 9).to(DType::kF32));
    const Value loss = ops::sum(graph, ops::mul(graph, y, weights));
    const auto [gradients, changed] = differentiate(graph, loss, leaves, Unreached::kZero);
    net.update(changed);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      graph.mark_output("d " + parameters[i], ops::scale(graph, gradients[i], 1));
    }
    program = std::make_unique<Program>(backend, variables, graph);
    program->feed("step", Tensor::of<std::int32_t>({}, {0}));
    program->feed("first_row", Tensor::of<std::int32_t>({}, {0}));
    program->feed("x", test::random_normal(shape, 5, 2, 3));
  }

  Tensor read(const std::string& name) const { return variables.read(name, true); }
};

inline double largest(const Tensor& value) {
  double result = 0;
  for (std::int64_t e = 0; e < value.elements(); ++e) {
    result = std::max(result, std::abs(value.at(e)));
  }
  return result;
}

inline void check_every_parameter_learns(const LayerRun& run) {
  for (const std::string& parameter : run.parameters) {
    CAPTURE(parameter);
    const Tensor d = run.program->fetch("d " + parameter, true);
    for (std::int64_t e = 0; e < d.elements(); ++e) CHECK(d.at(e) != 0);
  }
}

// Holds the gradient of every parameter against central differences, for a layer that is the same
// function in every run. The weights of the loss are those of LayerRun. The default h has h^2 at
// about 1e-9 of the weights' own scale of 0.05 and more.
inline void check_central_differences(LayerRun& run, double h = 1e-6) {
  const auto loss = [&] {
    run.program->run();
    const Tensor y = run.program->fetch("y", true),
                 weights = test::random_normal(y.shape(), 9).to(DType::kF32);
    double sum = 0;
    for (std::int64_t e = 0; e < y.elements(); ++e) sum += y.at(e) * weights.at(e);
    return sum;
  };
  for (const std::string& name : run.parameters) {
    CAPTURE(name);
    const Tensor start = run.read(name);
    run.program->run();
    const Tensor d = run.program->fetch("d " + name, true);
    const double scale = largest(d);
    CHECK(scale > 0);
    for (std::int64_t e = 0; e < start.elements(); ++e) {
      const auto moved = [&](double step) {
        Tensor value = start.clone();
        value.as<double>()[std::size_t(e)] += step;
        run.variables.write(name, value);
        return loss();
      };
      const double numeric = (moved(h) - moved(-h)) / (2 * h);
      CHECK(std::abs(numeric - d.at(e)) <= 1e-6 * scale);
    }
    run.variables.write(name, start);
  }
}

}  // namespace keel::nn

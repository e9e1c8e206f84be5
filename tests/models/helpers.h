// What the tests of models share: counting parameters, looking at gradients, and overfitting.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "backends/backends.h"
#include "frontend/train/feeder.h"
#include "frontend/train/step_graph.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "tests/support/small_run.h"

namespace keel::models {

using test::Settings;
using test::small_config;

inline std::vector<std::string> names_of(const Graph& graph, NodeKind kind) {
  std::vector<std::string> names;
  for (Value leaf : graph.leaves(kind)) names.push_back(graph.node(leaf).name);
  return names;
}

inline std::int64_t count_parameters(const Graph& graph) {
  std::int64_t count = 0;
  for (Value p : graph.leaves(NodeKind::kParameter)) count += graph.shape(p).elements();
  return count;
}

inline std::vector<std::int64_t> first_rows(std::int64_t count) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < count; ++row) rows.push_back(row);
  return rows;
}

// Names of the parameters whose gradient is zero everywhere, up to rounding, in the first batch; of
// one whose gradient is not finite, only that.
inline std::set<std::string> idle_parameters(const train::Config& config) {
  Graph g;
  const Value zero = g.constant(Tensor(DType::kI32, {}));  // what is drawn at random, if anything
  nn::Net net{.graph = g, .tick = zero, .first_row = zero};
  const task::Inputs inputs =
      train::add_inputs(g, config.model(), config.model().sizes(config.train().batch));
  const Value sum = config.model().build(net, inputs).loss_sum;
  const Value loss = ops::mul(g, sum, g.input("weight", {DType::kF32, {}}));
  const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
  const std::vector<Value> gradients = gradient(g, loss, g.leaves(NodeKind::kParameter));
  for (std::size_t i = 0; i < names.size(); ++i) {
    g.mark_output("d " + names[i], ops::scale(g, gradients[i], 1));
  }
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program program(*backend, variables, g);
  test::Rows(config).feed(program, first_rows(config.train().batch));
  program.run();
  std::set<std::string> idle;
  for (const std::string& name : names) {
    const Tensor d = program.fetch("d " + name);
    double largest = 0;
    for (std::int64_t e = 0; e < d.elements(); ++e) {
      if (!std::isfinite(d.at(e))) return {"not finite: " + name};
      largest = std::max(largest, std::abs(d.at(e)));
    }
    if (largest < 1e-6) idle.insert(name);
  }
  return idle;
}

// The loss after so many steps on one and the same batch.
inline double overfit(const train::Config& config, int steps) {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(config), {.guard = "grad_norm"});
  test::Rows(config).feed(step, first_rows(config.train().batch));
  step.feed("lr", Tensor::scalar(float(config.train().lr)));
  for (int i = 0; i < steps; ++i) {
    step.feed("step", Tensor::of<std::int32_t>({}, {i}));
    step.run();
  }
  return step.scalar("loss");
}

}  // namespace keel::models

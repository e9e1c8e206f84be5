// Helpers of the tests of models: counting parameters, looking at gradients, and overfitting.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
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
using test::small_job;

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
inline std::set<std::string> idle_parameters(const train::Job& job) {
  Graph g;
  const Value zero = g.constant(Tensor(DType::kI32, {}));  // what is drawn at random, if anything
  nn::Net net{.graph = g, .step = zero, .first_row = zero};
  const task::Inputs inputs =
      train::add_inputs(g, job.network(), job.network().sizes(job.train().batch));
  const Value sum = job.network().build(net, inputs).loss_sum;
  const Value loss = ops::mul(g, sum, g.input("weight", {DType::kF32, {}}));
  const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
  const std::vector<Value> gradients = gradient(g, loss, g.leaves(NodeKind::kParameter));
  for (std::size_t i = 0; i < names.size(); ++i) {
    g.mark_output("d " + names[i], ops::scale(g, gradients[i], 1));
  }
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program program(*backend, variables, g);
  test::Rows(job).feed(program, first_rows(job.train().batch));
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

// CHECKs, for every parameter, the gradient of the summed loss over the first training rows at the
// element where it is largest, by central differences in float64 on the reference backend. Steps of
// 1e-6 leave some 1e-10 of the loss to rounding, and are short beside the 3e-3 within which a norm
// of an almost constant row turns (sqrt(eps)), as the first state of an LSTM is.
inline void check_gradients(const train::Job& job, std::int64_t rows) {
  const auto backend = make_backend("reference");
  const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  const task::Batch& batch = stream->pick(first_rows(rows));
  const auto build = [&](Graph& g) {
    nn::Net net{.graph = g, .dtype = DType::kF64};
    const task::Outputs outputs =
        job.network().build(net, train::add_inputs(g, job.network(), batch.sizes));
    g.mark_output("loss", outputs.loss_sum);
    return outputs.loss_sum;
  };
  Graph forward, g;
  build(forward);
  const Value sum = build(g);
  const std::vector<std::string> names = names_of(g, NodeKind::kParameter);
  const std::vector<Value> gradients = gradient(g, sum, g.leaves(NodeKind::kParameter));
  for (std::size_t i = 0; i < names.size(); ++i) g.mark_output("d " + names[i], gradients[i]);
  Variables variables(*backend, 1);
  Program program(*backend, variables, g), forward_alone(*backend, variables, forward);
  train::Feeder(job.network()).feed(program, batch);
  train::Feeder(job.network()).feed(forward_alone, batch);
  program.run();
  const double loss = std::abs(program.scalar("loss"));
  std::map<std::string, Tensor> all;  // before any weight moves
  for (const std::string& name : names) all[name] = program.fetch("d " + name);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Tensor& d = all.at(name);
    const Tensor value = variables.read(name, true);
    std::int64_t at = 0;
    for (std::int64_t e = 0; e < d.elements(); ++e) {
      if (std::abs(d.at(e)) > std::abs(d.at(at))) at = e;
    }
    const auto loss_at = [&](double step) {
      Tensor moved = value.clone();
      moved.as<double>()[std::size_t(at)] += step;
      variables.write(name, moved);
      forward_alone.run();
      return forward_alone.scalar("loss");
    };
    const double h = 1e-6, near = loss_at(h) - loss_at(-h), far = loss_at(2 * h) - loss_at(-2 * h);
    const double slope = (8 * near - far) / (12 * h);
    variables.write(name, value);
    CAPTURE(d.at(at));
    CAPTURE(slope);
    CHECK(std::abs(d.at(at) - slope) <= 1e-6 * std::abs(slope) + 1e-9 * loss);
  }
}

// The loss after so many steps on one and the same batch.
inline double overfit(const train::Job& job, int steps) {
  const auto backend = make_backend(default_backend());
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job), {.guard = "grad_norm"});
  test::Rows(job).feed(step, first_rows(job.train().batch));
  step.feed("lr", Tensor::scalar(float(job.train().lr)));
  for (int i = 0; i < steps; ++i) {
    step.feed("step", Tensor::of<std::int32_t>({}, {i}));
    step.run();
  }
  return step.scalar("loss");
}

// The losses of the first and the last of so many steps on the first rows, in the shape in which a
// stream gives these.
struct LossChange {
  double first, last;
};
inline LossChange train_rows(const train::Job& job, std::int64_t rows, std::int32_t steps) {
  const auto backend = make_backend(default_backend());
  const auto stream = job.splits().stream(task::Split::kTrain, {.batch = 4096, .shuffle = {}});
  const task::Batch& batch = stream->pick(first_rows(rows));
  Variables variables(*backend, 1);
  Program step(*backend, variables, train::build_step(job, batch.sizes), {.guard = "grad_norm"});
  train::Feeder feeder(job.network());
  LossChange loss{};
  for (std::int32_t i = 0; i < steps; ++i) {
    feeder.feed(step, batch, {.step = i, .rate = 3e-3});
    step.run();
    loss.last = step.scalar("loss");
    if (i == 0) loss.first = loss.last;
  }
  return loss;
}

}  // namespace keel::models

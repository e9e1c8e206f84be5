// One training step of a norm on the cuda backend, and everything that comes of it.
#pragma once

#include <map>
#include <string>

#include "backends/backends.h"
#include "frontend/nn/norm.h"
#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "tests/support/graph_runner.h"

namespace keel::cuda {

// Every output, parameter and state of one training step of a norm.
inline std::map<std::string, Tensor> norm_step(const nn::Norm& norm, const Shape& shape) {
  const auto backend = make_backend("cuda");
  Variables variables(*backend, 3);
  Graph g;
  nn::Net net{.graph = g};
  net.step = net.first_row = g.constant(Tensor(DType::kI32, {}));
  const Value x = g.parameter("x", {DType::kF32, shape}, [](Tensor& value, const Philox&) {
    value = test::random_normal(value.shape(), 4, 1, 2).to(DType::kF32);
  });
  const Value y = norm.alone(net, "n", x);
  const Value weights = g.constant(test::random_normal(shape, 5).to(DType::kF32));
  const std::vector<Value> leaves = g.leaves(NodeKind::kParameter);
  g.mark_output("y", y);
  const Value loss = ops::sum(g, ops::mul(g, y, weights));
  const auto [gradients, changed] = differentiate(g, loss, leaves, Unreached::kZero);
  net.update(changed);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    g.mark_output("d " + g.node(leaves[i].node).name, gradients[i]);
  }
  Program program(*backend, variables, g);
  program.run();
  std::map<std::string, Tensor> results;
  for (const NamedValue& output : g.outputs()) results[output.name] = program.fetch(output.name);
  for (const auto& [name, variable] : variables.all()) results[name] = variables.read(name);
  return results;
}

// The norms that take x (rows, features); instance norm takes images and sequences.
inline std::vector<std::string> norms_of_rows() {
  std::vector<std::string> names;
  for (const nn::NormFacts& facts : nn::norm_facts()) {
    if (facts.name != "instancenorm") names.push_back(facts.any_width());
  }
  return names;
}

}  // namespace keel::cuda

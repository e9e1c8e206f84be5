#include "program/single_norm.h"

#include <algorithm>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::cli {
namespace {

const std::string kLayer = "norm";

}  // namespace

SingleNorm::SingleNorm(const nn::Norm& norm, nn::Mode mode, std::uint64_t seed,
                       const NormStep& step) {
  nn::Net net{.graph = graph, .mode = mode, .seed = seed, .dtype = step.x.dtype};
  net.step = graph.input("step", {DType::kI32, {}});
  net.first_row = graph.constant(Tensor(DType::kI32, {}));  // x is the whole update
  const Value x = graph.input("x", step.x);
  const Shape rows(step.x.shape.sizes().first(std::size_t(step.x.shape.rank() - 1)));
  const Value mask = step.masked ? graph.input("mask", {DType::kU8, rows}) : Value{};
  const Value y = norm.alone(net, kLayer, x, mask);
  graph.mark_output("y", y);
  for (int i = 0; i < graph.size(); ++i) {
    if (graph.node(i).kind == NodeKind::kParameter) parameters.push_back({i, 0});
    if (graph.node(i).kind == NodeKind::kState) states.push_back({i, 0});
  }
  if (step.backward) add_gradients(net, x, y);
}

std::string SingleNorm::array_name(Value v) const {
  const bool is_state = graph.node(v).kind == NodeKind::kState;
  return (is_state ? "state." : "") + short_name(v);
}

std::vector<Value> SingleNorm::leaves() const {
  std::vector<Value> all = parameters;
  all.insert(all.end(), states.begin(), states.end());
  return all;
}

// Without the layer's name, and with dots, since arrays in a file have no slashes.
std::string SingleNorm::short_name(Value v) const {
  std::string name = leaf(v).substr(kLayer.size() + 1);
  std::ranges::replace(name, '/', '.');
  return name;
}

// Adds the gradients of sum(y * dy); dy is the gradient that comes from the rest of the network.
void SingleNorm::add_gradients(const nn::Net& net, Value x, Value y) {
  const Value dy = graph.input("dy", graph.type(y));
  std::vector<Value> wrt{x};
  wrt.insert(wrt.end(), parameters.begin(), parameters.end());
  const Value loss = ops::sum(graph, ops::mul(graph, y, dy));
  const Gradients gradients = differentiate(graph, loss, wrt, Unreached::kZero);
  net.update(gradients.states);
  graph.mark_output("dx", gradients.of[0]);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    graph.mark_output("d" + short_name(parameters[i]), gradients.of[i + 1]);
  }
}

bool takes_some_x(const nn::Norm& norm, nn::Mode mode) {
  constexpr std::int64_t kWidth = 720720;  // the least multiple of 1 to 16; nothing is allocated
  try {
    SingleNorm(norm, mode, 0, {{DType::kF32, {2, 2, kWidth}}, true});
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace keel::cli

#include "frontend/compare/cases/op_case.h"

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"

namespace keel::compare {
namespace {

// sum over floating outputs j of <output j, weights j>
Value weighted_sum(Graph& g, const std::vector<Value>& outputs) {
  Value total;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    const TensorType type = g.type(outputs[j]);
    if (!is_floating(type.dtype)) continue;
    const Tensor weights = random_normal(type.shape, 900 + std::uint32_t(j));
    const Value term = ops::sum(g, ops::mul(g, outputs[j], g.constant(weights.to(type.dtype))));
    total = total.valid() ? ops::add(g, total, term) : term;
  }
  return total;
}

}  // namespace

CaseGraph graph_of(const OpCase& op_case, DType dtype) {
  CaseGraph made;
  Graph& g = made.graph;
  std::vector<Value> inputs, differentiable;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const Tensor& value = op_case.inputs[i];
    const std::string name = fmt::format("x{}", i);
    const bool floating = is_floating(value.dtype());
    const DType type = floating ? dtype : value.dtype();
    inputs.push_back(g.input(name, {type, value.shape()}));
    made.feeds[name] = value.clone();
    if (floating) {
      differentiable.push_back(inputs.back());
      names.push_back(fmt::format("d{}", i));
    }
  }
  const std::vector<Value> outputs = op_case.build(g, inputs);
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    g.mark_output(fmt::format("y{}", j), outputs[j]);
  }
  if (op_case.gradients) {
    const std::vector<Value> d = gradient(g, weighted_sum(g, outputs), differentiable);
    for (std::size_t i = 0; i < d.size(); ++i) g.mark_output(names[i], d[i]);
  }
  return made;
}

Results run_case(Backend& backend, const OpCase& op_case, DType dtype) {
  const CaseGraph made = graph_of(op_case, dtype);
  return run_graph(backend, made.graph, made.feeds, {.optimize = op_case.optimize});
}

Tensor random_normal(const Shape& shape, std::uint32_t stream, double mean, double deviation) {
  Tensor result(DType::kF64, shape);
  const Philox random(42, stream);
  std::uint64_t element = 0;
  for (double& value : result.as<double>()) value = mean + deviation * random.normal(element++);
  return result;
}

}  // namespace keel::compare

#include "frontend/compare/cases/case_builder.h"

#include <algorithm>

#include "src/autodiff/gradient.h"
#include "src/ops/elementwise.h"
#include "src/ops/reduce.h"
#include "src/passes/bf16_products.h"
#include "src/passes/narrow_norms.h"

namespace keel::compare {
namespace {

// Norms are narrowed last: passes look for the ops of norms, not for casts beside them.
Graph compared_graph_of(const LayerForm& form, const Graph& graph) {
  if (!form.is_narrow) return compared_graph(graph, form.unfused);
  return narrow_norms(compared_graph(bf16_products(graph), form.unfused));
}

}  // namespace

Value CaseBuilder::add(Sampled sampled, const TensorType& type, std::int64_t below) {
  const std::string name = fmt::format("in{}", sources_.size());
  sources_.push_back({name, type, sampled, below});
  const Value v = graph.input(name, type);
  if (is_floating(type.dtype)) floating_.push_back(v);
  return v;
}

void CaseBuilder::mark(const std::vector<Value>& outputs) {
  for (Value v : outputs) graph.mark_output(fmt::format("y{}", graph.outputs().size()), v);
}

std::vector<Update> CaseBuilder::differentiate(const std::vector<Value>& outputs,
                                               std::span<const Value> parameters) {
  std::vector<Value> wrt = floating_;
  wrt.insert(wrt.end(), parameters.begin(), parameters.end());
  mark(outputs);
  Value loss;
  for (Value y : outputs) {
    if (!is_floating(graph.type(y).dtype)) continue;
    const Value term = ops::sum(graph, ops::mul(graph, y, normal(graph.shape(y))));
    loss = loss.valid() ? ops::add(graph, loss, term) : term;
  }
  const Gradients gradients = keel::differentiate(graph, loss, wrt, Unreached::kZero);
  mark({loss});
  mark(gradients.of);
  return gradients.states;
}

bool has_bf16(const Graph& graph) {
  for (int i = 0; i < graph.size(); ++i) {
    const auto is_bf16 = [](const TensorType& type) { return type.dtype == DType::kBF16; };
    if (std::ranges::any_of(graph.node(i).outputs, is_bf16)) return true;
  }
  return false;
}

std::unique_ptr<GraphSubject> CaseBuilder::finish(LayerName name, const LayerForm& form,
                                                  Feeds first_values) {
  const auto draws = [sources = std::move(sources_)](std::int64_t step) {
    Feeds feeds;
    for (const Source& source : sources) feeds[source.name] = draw(source, step);
    return feeds;
  };
  return std::make_unique<GraphSubject>(std::move(name), compared_graph_of(form, graph), draws,
                                        std::move(first_values));
}

}  // namespace keel::compare

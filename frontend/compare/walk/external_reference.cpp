#include "frontend/compare/walk/external_reference.h"

namespace keel::compare {

void ExternalReference::take(const Site& site, bool is_compared, NodeReport report,
                             const NodeSink& sink) {
  const auto& [graph, node, truth, node_result] = site;
  values_.take(graph, node, truth);
  const ExternalInputs inputs = values_.inputs(graph, node, truth);
  const bool has_output = values_.has_output(graph, node);
  const Node& of = graph.node(node);
  const bool is_number = of.outputs[0].shape.elements() == 1;
  const bool has_more = (of.outputs.size() > 1 || is_number) && !is_view(of);
  NodeResult own;
  if (inputs.missing.empty() && (has_output || has_more)) {
    own = reference_node(reference_, graph, node, inputs.values,
                         {.kernels = Kernels::kAny, .input_errors = inputs.errors});
    if (has_more) values_.derive(node, own.outputs, own.bounds.largest);
  }
  if (!is_compared || !has_output) return;
  report.standard = has_general_rule(of) ? "any kernel" : "keel's promise";
  if (!inputs.missing.empty()) {
    report.compared = false;
    report.reason = fmt::format("its input {} was not given", inputs.missing);
  }
  measure(site, own, std::move(report), sink);
}

void ExternalReference::measure(const Site& site, const NodeResult& own, NodeReport report,
                                const NodeSink& sink) {
  const auto& [graph, node, truth, node_result] = site;
  const std::vector<Tensor>& expected = report.compared ? own.outputs : node_result.outputs;
  const bool is_exact = is_view(graph.node(node));
  Measure measure;
  std::vector<Tensor> got;
  for (std::size_t port = 0; port < expected.size(); ++port) {
    const Tensor* value = values_.given(graph, {node, int(port)});
    got.push_back(value ? value->clone() : expected[port].clone());
    if (!value) continue;
    const Tensor zero(DType::kF64, expected[port].shape());
    const Tensor* bound = is_exact ? &zero : report.compared ? &own.bounds[port] : nullptr;
    measure.add(int(port), *value, expected[port], report.compared ? bound : nullptr);
    if (report.compared && port < own.bounds.usual.size()) {
      measure.add_strict(*value, expected[port], own.bounds.usual[port],
                         own.bounds.deviation[port]);
    }
  }
  report.errors = measure.result();
  report.place_worst(expected);
  report.drift = measured(got, node_result.outputs, {});
  sink(report, {graph, truth.inputs(graph.node(node)), expected, got, own.bounds.largest});
}

}  // namespace keel::compare

#include "frontend/compare/walk/subject.h"

#include "src/passes/pipeline.h"

namespace keel::compare {

Tensor first_value(const Subject& subject, const Node& leaf) {
  const TensorType& type = leaf.outputs[0];
  const auto given = subject.first_values().find(leaf.name);
  if (given != subject.first_values().end()) return given->second.to(type.dtype);
  Tensor value(type);
  if (leaf.initializer) leaf.initializer(value, Philox(subject.seed(), stream_of(leaf.name)));
  return value;
}

Graph compared_graph(const Graph& graph, bool unfused) {
  return unfused ? remove_dead_code(graph) : run_passes(graph, {.verify_each = false});
}

}  // namespace keel::compare

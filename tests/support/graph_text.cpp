#include "tests/support/graph_text.h"

#include <fmt/format.h>

namespace keel::test {
namespace {

// Leaves of many elements are told by their first ones.
std::string first_values(const Node& node) {
  if (!node.initializer) return "";
  Tensor value(node.outputs[0]);
  node.initializer(value, Philox(7, stream_of(node.name)));
  std::string text;
  for (std::int64_t e = 0; e < std::min<std::int64_t>(value.elements(), 64); ++e) {
    text += " " + attr_text(value.at(e));
  }
  return text;
}

std::string leaf_text(const Node& node) {
  std::string text = fmt::format("leaf {} decays={} trains={} lr_scale={}", int(node.kind),
                                 node.facts.decays, node.facts.trains, node.facts.lr_scale);
  if (node.bounds) text += fmt::format(" {} to {}", node.bounds->least, node.bounds->most);
  for (std::int64_t e = 0; node.constant && e < node.constant->elements(); ++e) {
    text += " " + attr_text(node.constant->at(e));
  }
  return text + first_values(node);
}

}  // namespace

std::string graph_text(const Graph& graph) {
  std::string text;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    text += node.name + " ";
    text += node.op ? std::string(node.op->name) + " " + node.attrs.text() : leaf_text(node);
    for (const Value input : node.inputs) text += fmt::format(" {}.{}", input.node, input.port);
    for (const TensorType& type : node.outputs) text += " " + type.text();
    text += node.is_bf16 ? " bf16\n" : "\n";
  }
  for (const NamedValue& output : graph.outputs()) {
    text += fmt::format("output {} {}.{}\n", output.name, output.value.node, output.value.port);
  }
  for (const Update& update : graph.updates()) {
    text += fmt::format("update {} {}.{}\n", update.leaf.node, update.next.node, update.next.port);
  }
  return text;
}

}  // namespace keel::test

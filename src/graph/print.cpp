#include "src/graph/print.h"

#include <fmt/ranges.h>

#include "src/graph/kind_text.h"

namespace keel {
namespace {

std::string value_text(Value v) {
  if (!v.valid()) return "-";
  return v.port == 0 ? fmt::format("%{}", v.node) : fmt::format("%{}:{}", v.node, v.port);
}

}  // namespace

std::string print_node(const Graph& graph, int index) {
  const Node& node = graph.node(index);
  std::vector<std::string> inputs, types;
  for (Value v : node.inputs) inputs.push_back(value_text(v));
  for (const TensorType& type : node.outputs) types.push_back(type.text());
  const std::string_view head = node.op ? node.op->name : kind_text(node.kind);
  const std::string attrs = node.attrs.text();
  return fmt::format("%{} {} = {}({}){} : {}", index, node.name, head, fmt::join(inputs, ", "),
                     attrs.empty() ? "" : " {" + attrs + "}", fmt::join(types, ", "));
}

std::string print(const Graph& graph) {
  std::string text;
  for (int i = 0; i < graph.size(); ++i) text += print_node(graph, i) + "\n";
  for (const NamedValue& output : graph.outputs()) {
    text += fmt::format("output {} = {}\n", output.name, value_text(output.value));
  }
  for (const Update& update : graph.updates()) {
    text += fmt::format("update {} <- {}\n", graph.node(update.leaf).name, value_text(update.next));
  }
  return text;
}

}  // namespace keel

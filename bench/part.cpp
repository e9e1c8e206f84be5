#include "bench/part.h"

#include <map>

namespace keel::bench {

Graph part_of(const Graph& graph, const std::function<bool(const Node&)>& selects) {
  Graph part;
  std::map<Value, Value> known;
  const auto translate = [&](Value v) -> Value {
    if (!v.valid()) return {};
    if (const auto found = known.find(v); found != known.end()) return found->second;
    const Node& node = graph.node(v);
    const std::string name = fmt::format("{}:{}", node.name, v.port);
    if (node.kind == NodeKind::kOp) return known[v] = part.input(name, graph.type(v));
    return known[v] = part.append(node, {});
  };
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kOp || !selects(node)) continue;
    std::vector<Value> inputs;
    for (Value v : node.inputs) inputs.push_back(translate(v));
    const Value first = part.append(node, inputs);
    for (int port = 0; port < int(node.outputs.size()); ++port) known[{i, port}] = first.at(port);
    part.mark_output(node.name, first);
  }
  for (const Update& update : graph.updates()) {
    if (known.contains(update.leaf) && known.contains(update.next)) {
      part.mark_update(known[update.leaf], known[update.next]);
    }
  }
  return part;
}

}  // namespace keel::bench

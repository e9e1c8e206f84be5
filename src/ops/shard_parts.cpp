#include "src/ops/shard_parts.h"

#include <algorithm>
#include <utility>

namespace keel {
namespace {

std::int64_t collectives_of(const Graph& g) {
  return std::ranges::count_if(
      g.outputs(), [](const NamedValue& output) { return output.name.starts_with(kCollective); });
}

}  // namespace

Value given_for(const Graph& graph, Value all) {
  const Node& node = graph.node(all);
  if (node.kind != NodeKind::kInput) return {};
  const auto found = std::ranges::find(graph.outputs(), node.name, &NamedValue::name);
  return found == graph.outputs().end() ? Value{} : found->value;
}

PerNode<int> parts_of(const Graph& graph) {
  PerNode<int> part(graph, 0);
  for (const NamedValue& output : graph.outputs()) {
    if (output.name.starts_with(kCollective)) ++part[output.value.node];
  }
  int given = 0;
  for (int i = 0; i < graph.size(); ++i) given += std::exchange(part[i], given);
  return part;
}

namespace ops {

Value all_shards(Graph& g, Value part, std::int64_t shards) {
  const std::string name = fmt::format("{}{}", kCollective, collectives_of(g));
  std::vector<std::int64_t> sizes{shards};
  for (const std::int64_t size : g.shape(part).sizes()) sizes.push_back(size);
  g.mark_output(name, part);
  return g.input(name, {g.type(part).dtype, Shape(sizes)});
}

}  // namespace ops
}  // namespace keel

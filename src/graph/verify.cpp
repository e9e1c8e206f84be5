#include "src/graph/verify.h"

#include <unordered_set>

namespace keel {
namespace {

void verify_value(const Graph& graph, Value v, int before, const std::string& where) {
  check(v.node < before, ErrorKind::kInternal, "{}: reads node {} which comes later", where,
        v.node);
  const int ports = static_cast<int>(graph.node(v).outputs.size());
  check(v.port >= 0 && v.port < ports, ErrorKind::kInternal, "{}: expected a port below {}, got {}",
        where, ports, v.port);
}

void verify_op(const Graph& graph, int index) {
  const Node& node = graph.node(index);
  check(node.op != nullptr, ErrorKind::kInternal, "{}: a node without an op", node.name);
  std::vector<const TensorType*> types;
  for (Value v : node.inputs) {
    if (v.valid()) verify_value(graph, v, index, node.name);
    types.push_back(v.valid() ? &graph.type(v) : nullptr);
  }
  auto inferred = node.op->infer({*node.op, types, node.attrs});
  if (node.is_bf16 && inferred[0].dtype == DType::kF32) inferred[0].dtype = DType::kBF16;
  check(inferred == node.outputs, ErrorKind::kInternal,
        "{}: recorded types differ from inferred ones", node.name);
}

}  // namespace

void verify(const Graph& graph, std::string_view after) {
  std::unordered_set<std::string_view> names;
  try {
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.node(i);
      check(names.insert(node.name).second, ErrorKind::kInternal, "{}: the name is used twice",
            node.name);
      if (node.kind == NodeKind::kOp) verify_op(graph, i);
    }
    for (const NamedValue& output : graph.outputs()) {
      verify_value(graph, output.value, graph.size(), "output " + output.name);
    }
    for (const Update& update : graph.updates()) {
      const std::string where = "update of " + graph.node(update.leaf).name;
      verify_value(graph, update.next, graph.size(), where);
      check(graph.type(update.leaf) == graph.type(update.next), ErrorKind::kInternal,
            "{}: types differ", where);
      check(graph.node(update.next).kind == NodeKind::kOp, ErrorKind::kInternal,
            "{}: expected the result of an op", where);
    }
  } catch (const Error& error) {
    fail(ErrorKind::kInternal, "graph after {}: {}", after, error.what());
  }
}

}  // namespace keel

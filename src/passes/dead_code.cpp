// Dead code elimination.
#include "src/passes/pipeline.h"
#include "src/passes/rewrite.h"

namespace keel {
namespace {

PerNode<bool> find_live(const Graph& graph) {
  PerNode<bool> live(graph);
  for (const NamedValue& output : graph.outputs()) live[output.value.node] = true;
  for (const Update& update : graph.updates()) live[update.next.node] = true;
  for (int i = graph.size() - 1; i >= 0; --i) {
    if (!live[i]) continue;
    for (Value v : graph.node(i).inputs) {
      if (v.valid()) live[v.node] = true;
    }
  }
  return live;
}

}  // namespace

Graph remove_dead_code(const Graph& graph) {
  const PerNode<bool> live = find_live(graph);
  Rewriter rewriter(graph);
  for (int i = 0; i < graph.size(); ++i) {
    const NodeKind kind = graph.node(i).kind;
    const bool removable = kind == NodeKind::kOp || kind == NodeKind::kConstant;
    if (live[i] || !removable) rewriter.copy(i);
  }
  return rewriter.finish();
}

}  // namespace keel

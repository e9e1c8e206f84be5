#include "frontend/compare/walk/walk_plan.h"

#include <algorithm>

#include "src/graph/op_info.h"

namespace keel::compare {
namespace {

bool is_called(const std::string& path, const std::string& only) {
  return only.empty() || path == only || path.starts_with(only + "/");
}

}  // namespace

bool has_called(const Graph& graph, const std::string& only) {
  const auto is_leaf_called = [&](const Update& update) {
    return is_called(graph.node(update.leaf).name, only);
  };
  if (std::ranges::any_of(graph.updates(), is_leaf_called)) return true;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind == NodeKind::kOp && !is_view(node) && is_called(node.name, only)) return true;
  }
  return false;
}

WalkPlan::WalkPlan(const Graph& graph, const WalkChoice& choice, const std::string& subject)
    : compared_(graph, choice.only.empty()), needed_(graph, choice.only.empty()) {
  const std::string& only = choice.only;
  for (const Update& update : graph.updates()) updates_[update.next.node].push_back(update);
  for (int i = graph.size() - 1; i >= 0; --i) choose(graph, i, choice);
  check(only.empty() || std::ranges::count(compared_, true) > 0, ErrorKind::kUsage,
        "--only: no node of {} is called '{}'", subject, only);
}

std::span<const Update> WalkPlan::updates_of(int node) const {
  const auto found = updates_.find(node);
  return found == updates_.end() ? std::span<const Update>{} : found->second;
}

// Goes from the last node to the first, so that the readers of a node have been chosen before it.
void WalkPlan::choose(const Graph& graph, int i, const WalkChoice& choice) {
  const std::string& only = choice.only;
  const Node& node = graph.node(i);
  if (node.kind == NodeKind::kOp && (choice.views || !is_view(node))) {
    compared_[i] =
        is_called(node.name, only) || std::ranges::any_of(updates_of(i), [&](const Update& update) {
          return is_called(graph.node(update.leaf).name, only);
        });
  }
  // The steps that follow need the new value of a leaf.
  needed_[i] = needed_[i] || compared_[i] || !updates_of(i).empty();
  if (!needed_[i]) return;
  for (Value v : node.inputs) {
    if (v.valid()) needed_[v.node] = true;
  }
}

}  // namespace keel::compare

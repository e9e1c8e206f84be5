#include "program/support_probe.h"

#include <map>
#include <set>

#include "frontend/train/step_graph.h"
#include "models/registry.h"
#include "src/ops/matmul.h"

namespace keel::cli {
namespace {

// reason -> ops refused for it
using Refusals = std::map<std::string, std::set<std::string>>;

void ask(Backend& backend, const Graph& graph, Refusals& refusals) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kOp || node.op->is_view) continue;
    const std::string reason = backend.prepare({graph, node}).refusal;
    if (!reason.empty()) refusals[reason].insert(std::string(node.op->name));
  }
}

}  // namespace

std::string refusal_summary(Backend& backend) {
  Refusals refusals;
  for (const auto& entry : models::all_models()) {
    train::Config config(entry.make());
    ask(backend, train::build_step(config, config.model().sizes(2)), refusals);
  }
  Graph wide;
  const Value a = wide.input("a", {DType::kF64, {2, 2}});
  ops::matmul(wide, a, a);
  ask(backend, wide, refusals);
  std::string text;
  for (const auto& [reason, names] : refusals) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", fmt::join(names, ", "), reason);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace keel::cli

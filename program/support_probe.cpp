#include "program/support_probe.h"

#include <map>
#include <set>

#include "frontend/train/step_graph.h"
#include "models/registry.h"
#include "src/ops/matmul.h"

namespace keel::cli {
namespace {

class Probe {
 public:
  explicit Probe(Backend& backend) : backend_(backend) {}

  // Asks for every node of a graph, but once only for those of one op, with equal attributes and
  // types of equal rank: preparing a large model's kernels takes a while.
  void ask(const Graph& graph) {
    for (int i = 0; i < graph.size(); ++i) {
      const Node& node = graph.node(i);
      if (node.kind != NodeKind::kOp || is_view(node)) continue;
      if (!asked_.insert(kind_of(graph, node)).second) continue;
      const std::string reason = backend_.prepare({graph, node}).refusal;
      if (!reason.empty()) refusals_[reason].insert(std::string(node.op->name));
    }
  }

  // reason -> ops refused for it
  const std::map<std::string, std::set<std::string>>& refusals() const { return refusals_; }

 private:
  static std::string kind_of(const Graph& graph, const Node& node) {
    std::string kind = fmt::format("{} {}", node.op->name, node.attrs.text());
    for (Value v : node.inputs) {
      if (!v.valid()) {
        kind += " -";
        continue;
      }
      const TensorType& type = graph.type(v);
      kind += fmt::format(" {}{}", name_of(type.dtype), type.shape.rank());
    }
    return kind;
  }

  Backend& backend_;
  std::set<std::string> asked_;
  std::map<std::string, std::set<std::string>> refusals_;
};

}  // namespace

std::vector<Graph> graphs_to_ask_for() {
  std::vector<Graph> graphs;
  for (const auto& entry : models::all_models()) {
    train::Config config(entry.make());
    config.set("data.train_rows", "10");  // the graph is the same, and pictures take time to draw
    const train::Job job(std::move(config));
    graphs.push_back(train::build_step(job, job.network().sizes(2)));
  }
  Graph& wide = graphs.emplace_back();
  const Value a = wide.input("a", {DType::kF64, {2, 2}});
  ops::matmul(wide, a, a);
  return graphs;
}

std::string refusal_summary(Backend& backend, const std::vector<Graph>& graphs) {
  Probe probe(backend);
  for (const Graph& graph : graphs) probe.ask(graph);
  std::string text;
  for (const auto& [reason, names] : probe.refusals()) {
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", fmt::join(names, ", "), reason);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace keel::cli

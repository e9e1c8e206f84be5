#include "studies/observed_norms.h"

namespace keel::study {
namespace {

std::string output_name(const ObservedNorm& site, const std::string& what) {
  return site.name + "/" + what;
}

}  // namespace

std::vector<ObservedNorm> observed_norms(const Graph& graph, const OpInfo& op) {
  std::vector<ObservedNorm> sites;
  std::vector<std::string> backward;  // the name that the backward node of each must have
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.op == &op) {
      sites.push_back({node.name.substr(0, node.name.rfind('/')), i, -1});
      backward.push_back(fmt::format("{}.backward/{}_backward", node.name, op.name));
    }
    for (std::size_t s = 0; s < sites.size(); ++s) {
      if (node.name == backward[s]) sites[s].backward = i;
    }
  }
  return sites;
}

void mark(Graph& graph, const ObservedNorm& site, const std::string& what, Value value) {
  graph.mark_output(output_name(site, what), value);
}

Tensor fetch(const Program& program, const ObservedNorm& site, const std::string& what) {
  return program.fetch(output_name(site, what), true).to(DType::kF64);
}

}  // namespace keel::study

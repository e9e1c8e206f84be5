// Every norm, alone in a small graph.
#include "frontend/compare/draft.h"

namespace keel::compare {
namespace {

const std::string kLayerName = "norm";

// Numbers in place of the zeros and ones that parameters and states start with, which would hide
// errors; a variance stays positive. Counters stay.
Feeds drawn_leaves(const Graph& graph) {
  Feeds values;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    const bool is_state = node.kind == NodeKind::kState;
    if (!is_state && node.kind != NodeKind::kParameter) continue;
    if (!is_floating(node.outputs[0].dtype)) continue;
    const bool is_positive = node.bounds && node.bounds->least >= 0;
    const double middle = is_positive || node.name.ends_with("gain") ? 1 : 0;
    Tensor value(DType::kF64, node.outputs[0].shape);
    const Philox random(7, stream_of(node.name));
    std::uint64_t e = 0;
    for (double& v : value.as<double>()) {
      const double moved = 0.2 * random.normal(e++);
      v = middle + (is_positive ? std::abs(moved) : moved);
    }
    values[node.name] = value.to(DType::kF32);
  }
  return values;
}

struct NormInputCase {
  std::string name;
  Shape x;
  bool masked = false;
};

std::unique_ptr<GraphSubject> norm_subject(const nn::Norm& norm, const NormInputCase& c,
                                           bool unfused) {
  Draft draft;
  Graph& g = draft.graph;
  nn::Net net{.graph = g};
  net.tick = draft.step();
  net.first_row = g.constant(Tensor(DType::kI32, {}));
  const Value x = draft.normal(c.x);
  const Shape rows(c.x.sizes().first(std::size_t(c.x.rank() - 1)));
  const Value y = norm.alone(net, kLayerName, x, c.masked ? draft.mask(rows) : Value{});
  net.update(draft.differentiate({y}, g.leaves(NodeKind::kParameter)));
  Feeds leaves = drawn_leaves(g);
  return draft.finish(fmt::format("norm {}, {}", norm.name(), c.name), unfused, std::move(leaves));
}

}  // namespace

Subjects norm_subjects(const nn::Norm& norm, bool unfused) {
  std::vector<NormInputCase> cases{{"tokens", {4, 6, 48}}, {"images", {4, 12, 5, 7}}};
  if (norm.takes_mask()) cases.push_back({"padded tokens", {4, 6, 48}, true});
  Subjects subjects;
  std::string why;
  for (const NormInputCase& c : cases) {
    try {
      subjects.push_back(norm_subject(norm, c, unfused));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUsage) throw;
      why = error.what();
    }
  }
  check(!subjects.empty(), ErrorKind::kUsage, "{}", why);
  return subjects;
}

}  // namespace keel::compare

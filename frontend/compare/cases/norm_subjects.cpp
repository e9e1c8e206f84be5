// Every norm, alone in a small graph.
#include "frontend/compare/cases/case_builder.h"

namespace keel::compare {
namespace {

const std::string kLayerName = "norm";

// The first value of a parameter: 0 of a bias, another number of what scales.
double first_value(const Node& node) {
  Tensor value(node.outputs[0]);
  if (node.initializer) node.initializer(value, Philox(0, 0));
  return value.elements() > 0 ? value.at(0) : 0;
}

// Numbers in place of the zeros and ones that parameters and states start with, which would hide
// errors; a variance stays positive. Counters stay.
Feeds sampled_leaves(const Graph& graph) {
  Feeds values;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    const bool is_state = node.kind == NodeKind::kState;
    if (!is_state && node.kind != NodeKind::kParameter) continue;
    if (!is_floating(node.outputs[0].dtype)) continue;
    const bool is_positive = node.bounds && node.bounds->least >= 0;
    const bool is_around_1 = is_positive || node.name.ends_with("gain");
    const double middle = is_around_1 ? 1 : is_state ? 0 : first_value(node);
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
  Sampled sampled = Sampled::kNormal;
};

// Sizes are cut by backends/onednn/{row,column}_blocks.cpp and its group_norm_plan.h: many rows and
// few features, more features than a panel has, rows too wide to keep sums of all their columns,
// few and many images. Features are multiples of 4, for groups of them, but of no register.
std::vector<NormInputCase> norm_cases_of(CaseSize size) {
  if (size == CaseSize::kSmall) {
    return {{"tokens", {4, 6, 48}}, {"images", {4, 12, 5, 7}}, {"padded tokens", {4, 6, 48}, true}};
  }
  return {{"many tokens", {7, 599, 20}},
          {"wide tokens", {11, 24, 1052}},
          {"widest tokens", {1, 3, 16420}},
          {"many images", {67, 12, 9, 11}},
          {"wide images", {6, 44, 7, 9}},
          {"many padded tokens", {7, 599, 20}, true},
          {"hard rows", {5, 9, 44}, false, Sampled::kHostileRows},
          {"hard features", {7, 11, 44}, false, Sampled::kHostileColumns}};
}

std::unique_ptr<GraphSubject> norm_subject(const nn::Norm& norm, const NormInputCase& c,
                                           const LayerForm& form) {
  CaseBuilder builder;
  Graph& g = builder.graph;
  nn::Net net{.graph = g};
  net.step = builder.step();
  net.first_row = g.constant(Tensor(DType::kI32, {}));
  const Value x = builder.floats(c.sampled, c.x);
  const Shape rows(c.x.sizes().first(std::size_t(c.x.rank() - 1)));
  const Value y = norm.alone(net, kLayerName, x, c.masked ? builder.mask(rows) : Value{});
  net.update(builder.differentiate({y}, g.leaves(NodeKind::kParameter)));
  Feeds leaves = sampled_leaves(g);
  return builder.finish({"norm " + norm.name(), c.name}, form, std::move(leaves));
}

}  // namespace

Subjects norm_subjects(const nn::Norm& norm, const LayerForm& form) {
  Subjects subjects;
  std::string why;
  for (const NormInputCase& c : norm_cases_of(form.size)) {
    if (c.masked && !norm.takes_mask()) continue;
    try {
      subjects.push_back(norm_subject(norm, c, form));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUsage) throw;
      why = error.what();
    }
  }
  check(!subjects.empty(), ErrorKind::kUsage, "{}", why);
  return subjects;
}

}  // namespace keel::compare

#include "frontend/compare/foreign.h"

#include <algorithm>

namespace keel::compare {
namespace {

std::string dotted(std::string path) {
  std::ranges::replace(path, '/', '.');
  return path;
}

void add_start(io::Arrays& arrays, const std::string& name, Tensor value) {
  const bool is_new = arrays.try_emplace(dotted(name), std::move(value)).second;
  check(is_new, ErrorKind::kUsage, "--export: two leaves are called '{}'", dotted(name));
}

}  // namespace

std::string array_name(const Node& node, int port) {
  const std::string name = dotted(node.name);
  return port == 0 ? name : fmt::format("{}.{}", name, port);
}

io::Arrays start_arrays(Subject& subject) {
  const SubjectStep step = subject.at(0);
  io::Arrays arrays;
  for (const auto& [name, value] : step.feeds) add_start(arrays, name, value.clone());
  for (int i = 0; i < step.graph->size(); ++i) {
    const Node& node = step.graph->node(i);
    if (node.kind != NodeKind::kParameter && node.kind != NodeKind::kState) continue;
    add_start(arrays, node.name, first_value(subject, node));
  }
  return arrays;
}

void ForeignValues::take_view(const Graph& graph, int index, const Lane& truth) {
  const Node& node = graph.node(index);
  const auto given = inputs(graph, index, truth);
  if (!given || (*given)[0] == nullptr) return;
  const Tensor& whole = *(*given)[0];
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    Tensor view(node.outputs[std::size_t(port)]);
    const std::int64_t offset = view_offset(node, port) * size_of(whole.dtype());
    convert(whole.data() + offset, whole.dtype(), view.data(), view.dtype(), view.elements());
    known_[{index, port}] = &(views_[{index, port}] = std::move(view));
  }
}

void ForeignValues::take(const Graph& graph, int index, const Lane& truth) {
  const Node& node = graph.node(index);
  if (is_view(node)) return take_view(graph, index, truth);
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    const auto found = arrays_.find(array_name(node, port));
    if (found == arrays_.end()) continue;
    const TensorType& type = node.outputs[std::size_t(port)];
    const Tensor& value = found->second;
    check(value.shape() == type.shape && is_floating(value.dtype()) == is_floating(type.dtype),
          ErrorKind::kBadInput, "{}: {}: expected {}, got {}", name_, found->first, type.text(),
          value.type().text());
    used_.insert(found->first);
    known_[{index, port}] = &value;
  }
}

bool ForeignValues::has_output(const Graph& graph, int index) const {
  for (int port = 0; port < int(graph.node(index).outputs.size()); ++port) {
    if (output({index, port})) return true;
  }
  return false;
}

const Tensor* ForeignValues::output(Value v) const {
  const auto found = known_.find(v);
  return found == known_.end() ? nullptr : found->second;
}

std::optional<std::vector<const Tensor*>> ForeignValues::inputs(const Graph& graph, int index,
                                                                const Lane& truth) const {
  std::vector<const Tensor*> result;
  for (Value v : graph.node(index).inputs) {
    const bool is_leaf = v.valid() && graph.node(v).kind != NodeKind::kOp;
    const Tensor* value = !v.valid() ? nullptr : is_leaf ? &truth.value(v) : output(v);
    if (v.valid() && value == nullptr) return std::nullopt;
    result.push_back(value);
  }
  return result;
}

void ForeignValues::expect_all_used() const {
  for (const auto& [name, array] : arrays_) {
    check(used_.contains(name), ErrorKind::kBadInput,
          "{}: array {}: expected the name of a node's output (see keel inspect graph --stage "
          "before)",
          name_, name);
  }
}

}  // namespace keel::compare

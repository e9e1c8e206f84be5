#include "frontend/compare/walk/external.h"

#include <algorithm>
#include <set>

#include "frontend/compare/bounds/node_bounds.h"
#include "src/core/nearest.h"
#include "src/graph/kind_text.h"

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

std::vector<ArrayFacts> array_facts(const Graph& graph) {
  std::vector<ArrayFacts> facts;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    std::vector<std::string> inputs;
    for (Value v : node.inputs) {
      inputs.push_back(v.valid() ? array_name(graph.node(v.node), v.port) : "-");
    }
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      facts.push_back({array_name(node, port), node.outputs[std::size_t(port)].text(),
                       std::string(node.op != nullptr ? node.op->name : kind_text(node.kind)),
                       inputs});
    }
  }
  return facts;
}

io::Arrays start_arrays(Subject& subject) {
  const SubjectStep step = subject.at(0);
  io::Arrays arrays;
  for (const auto& [name, value] : step.feeds) add_start(arrays, name, value.clone());
  for (int i = 0; i < step.graph->size(); ++i) {
    const Node& node = step.graph->node(i);
    if (node.kind == NodeKind::kConstant) add_start(arrays, node.name, node.constant->clone());
    if (!persists(node.kind)) continue;
    add_start(arrays, node.name, first_value(subject, node));
  }
  return arrays;
}

void ExternalValues::take_view(const Graph& graph, int index, const BackendTrace& truth) {
  const Node& node = graph.node(index);
  const ExternalInputs of = inputs(graph, index, truth);
  if (!of.missing.empty() || of.values[0] == nullptr || of.errors[0] != nullptr) return;
  const Tensor& whole = *of.values[0];
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    if (known_.contains({index, port})) continue;
    Tensor view(node.outputs[std::size_t(port)]);
    const std::int64_t offset = view_offset(node, port) * size_of(whole.dtype());
    convert(whole.data() + offset, whole.dtype(), view.data(), view.dtype(), view.elements());
    known_[{index, port}] = &(views_[{index, port}] = std::move(view));
  }
}

void ExternalValues::take(const Graph& graph, int index, const BackendTrace& truth) {
  const Node& node = graph.node(index);
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    const auto found = arrays_.find(array_name(node, port));
    if (found == arrays_.end()) continue;
    const TensorType& type = node.outputs[std::size_t(port)];
    const Tensor& value = found->second;
    check(value.shape() == type.shape && is_floating(value.dtype()) == is_floating(type.dtype),
          ErrorKind::kBadInput, "{}: {}: expected {}, got {}", name_, found->first, type.text(),
          value.type().text());
    known_[{index, port}] = &value;
  }
  if (is_view(node)) take_view(graph, index, truth);
}

bool ExternalValues::has_output(const Graph& graph, int index) const {
  for (int port = 0; port < int(graph.node(index).outputs.size()); ++port) {
    if (given(graph, {index, port})) return true;
  }
  return false;
}

const Tensor* ExternalValues::given(const Graph& graph, Value v) const {
  const auto found = arrays_.find(array_name(graph.node(v.node), v.port));
  return found == arrays_.end() ? nullptr : &found->second;
}

ExternalValues::Known ExternalValues::known(const Graph& graph, Value v,
                                            const BackendTrace& truth) const {
  if (graph.node(v).kind != NodeKind::kOp) return {&truth.value(v)};
  if (const auto found = known_.find(v); found != known_.end()) return {found->second};
  const auto found = derived_.find(v);
  if (found == derived_.end()) return {};
  return {&found->second.value, found->second.is_exact ? nullptr : &found->second.error};
}

ExternalInputs ExternalValues::inputs(const Graph& graph, int index,
                                      const BackendTrace& truth) const {
  const Node& node = graph.node(index);
  ExternalInputs result;
  for (int i = 0; i < int(node.inputs.size()); ++i) {
    const Value v = node.inputs[std::size_t(i)];
    const Known found = v.valid() ? known(graph, v, truth) : Known{};
    const bool is_usable = found.error == nullptr || takes_input_error(node, i);
    if (v.valid() && (found.value == nullptr || !is_usable) && result.missing.empty()) {
      result.missing = array_name(graph.node(v.node), v.port);
    }
    result.values.push_back(found.value);
    result.errors.push_back(found.error);
  }
  return result;
}

void ExternalValues::derive(int index, std::span<const Tensor> outputs,
                            std::span<const Tensor> bounds) {
  for (std::size_t port = 0; port < outputs.size(); ++port) {
    const bool is_first = port == 0 && outputs[port].elements() != 1;
    if (is_first || known_.contains({index, int(port)})) continue;
    Derived derived{outputs[port].clone(), bounds[port].clone()};
    derived.is_exact =
        std::ranges::all_of(derived.error.as<double>(), [](double error) { return error == 0; });
    derived_[{index, int(port)}] = std::move(derived);
  }
}

void ExternalValues::expect_names(const Graph& graph) const {
  std::set<std::string> names;
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    if (node.kind != NodeKind::kOp) continue;
    for (int port = 0; port < int(node.outputs.size()); ++port)
      names.insert(array_name(node, port));
  }
  const std::vector<std::string> known(names.begin(), names.end());
  for (const auto& [name, array] : arrays_) {
    check(names.contains(name), ErrorKind::kBadInput,
          "{}: array: {} (keel compare --names prints the names of all outputs)", name_,
          unknown_name(name, known));
  }
}

}  // namespace keel::compare

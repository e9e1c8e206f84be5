// A program's times by node, and its search for a value that is not finite.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "src/runtime/program.h"

namespace keel {

// The names of what a kernel runs.
std::pair<std::string, std::string> Program::text_of(std::size_t kernel) const {
  const auto [first, last] = kernel_nodes_[kernel];
  if (first < 0) return {"update", "copy"};
  if (first == last) return {graph_.node(first).name, std::string(graph_.node(first).op->name)};
  const auto joined = std::ranges::find(joined_, first, &JoinedRows::first);
  std::string ops;
  for (int i = first; i <= last; ++i) {
    if (runs_no_kernel(graph_.node(i))) continue;
    ops += fmt::format("{}{}", ops.empty() ? "" : " + ", graph_.node(i).op->name);
  }
  return {graph_.node(joined->norm).name, ops};
}

std::vector<NodeTime> Program::profile(int repeats) {
  using Clock = std::chrono::steady_clock;
  repeats = std::max(repeats, 1);
  enter_carries();
  std::vector<std::vector<double>> times(kernels_.size());
  for (int r = 0; r < repeats; ++r) {
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const auto start = Clock::now();
      backend_.run({&kernels_[k], 1});
      times[k].push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count());
    }
  }
  std::vector<NodeTime> result;
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    std::ranges::nth_element(times[k], times[k].begin() + repeats / 2);
    const auto [name, op] = text_of(k);
    result.push_back({name, op, times[k][std::size_t(repeats / 2)]});
  }
  return result;
}

std::optional<NonFinite> Program::inspect_outputs(int index) const {
  const Node& node = graph_.node(index);
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    const Value v{index, port};
    if (!is_floating(graph_.type(v).dtype) || plan_.at(v).kind == Location::kAbsent) continue;
    const Tensor value = download(v);
    for (std::int64_t e = 0; e < value.elements(); ++e) {
      if (std::isfinite(value.at(e))) continue;
      const std::string_view what = node.op ? node.op->name : "leaf";
      return NonFinite{node.name, fmt::format("output {} of {}", port, what), e, value.at(e), {}};
    }
  }
  return std::nullopt;
}

bool Program::overwrites_leaf(int index) const {
  for (int port = 0; port < int(graph_.node(index).outputs.size()); ++port) {
    if (plan_.at({index, port}).kind == Location::kLeaf) return true;
  }
  return false;
}

std::string Program::inputs_text(const Node& node, const std::vector<Tensor>& values) const {
  std::string text;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Value v = node.inputs[i];
    if (!v.valid()) continue;
    double largest = 0;
    for (std::int64_t e = 0; e < values[i].elements(); ++e) {
      largest = std::max(largest, std::abs(values[i].at(e)));
    }
    text += fmt::format("{}{} {} up to {:.4g}", text.empty() ? "" : ", ", graph_.node(v.node).name,
                        graph_.shape(v).text(), largest);
  }
  return text;
}

std::optional<NonFinite> Program::find_non_finite() {
  enter_carries();
  for (int i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_.node(i);
    const bool is_met = node.kind == NodeKind::kInput && outputs_.contains(node.name);
    if (node.kind == NodeKind::kOp || is_met) continue;
    if (auto found = inspect_outputs(i)) return found;
  }
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    const auto [first, last] = kernel_nodes_[k];
    for (int i = std::max(first, 0); i <= last; ++i) {
      if (runs_no_kernel(graph_.node(i)) || overwrites_leaf(i)) continue;
      // Joined kernels run one by one here: their results may share a place.
      const Kernel alone = first == last
                               ? kernels_[k]
                               : backend_.prepare({graph_, graph_.node(i)}).bind(binding_of(i));
      auto found = inspect_run(i, alone);
      if (!found) continue;
      found->part =
          std::ranges::count_if(collectives_, [&](const Collective& m) { return m.end <= k; });
      return found;
    }
  }
  return std::nullopt;
}

// Runs the kernel of one node and inspects its outputs.
std::optional<NonFinite> Program::inspect_run(int index, const Kernel& kernel) {
  const Node& node = graph_.node(index);
  // Read before the node runs, for its output may take the place of an input.
  std::vector<Tensor> inputs;
  for (Value v : node.inputs) inputs.push_back(v.valid() ? download(v) : Tensor());
  backend_.run({&kernel, 1});
  auto found = inspect_outputs(index);
  if (found) found->inputs = inputs_text(node, inputs);
  return found;
}

}  // namespace keel

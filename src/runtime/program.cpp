#include "src/runtime/program.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "src/graph/verify.h"
#include "src/passes/pipeline.h"

namespace keel {
namespace {

bool runs_no_kernel(const Node& node) { return node.kind != NodeKind::kOp || is_view(node); }

}  // namespace

Graph optimized_for(const Backend& backend, const Graph& graph, bool verify_each) {
  const auto panels = [&](const Graph& g, const Node& product) {
    return backend.preferred_packing({g, product});
  };
  const auto loss_steps = [&](const Graph& g, const Node& loss) {
    return backend.prefers_loss_step({g, loss});
  };
  const auto narrow = [&](const Graph& g, const Node& node) {
    return backend.narrows_result({g, node});
  };
  return run_passes(graph, {.channels_last = backend.prefers_channels_last(),
                            .panels = panels,
                            .loss_steps = loss_steps,
                            .narrow = narrow,
                            .verify_each = verify_each});
}

namespace {

Graph compiled_graph(const Backend& backend, const Graph& graph, const CompileOptions& options) {
  Graph result = options.optimize ? optimized_for(backend, graph, options.verify_passes) : graph;
  if (options.recompute_before.empty()) return result;
  result = recompute(result, options.recompute_before);
  verify(result, "recompute");
  return result;
}

}  // namespace

Program::Program(Backend& backend, Variables& variables, const Graph& graph,
                 const CompileOptions& options)
    : backend_(backend),
      graph_(compiled_graph(backend, graph, options)),
      constants_(backend, graph_) {
  variables.declare(graph_);
  std::vector<Prepared> prepared(std::size_t(graph_.size()));
  std::vector<std::int64_t> workspaces(prepared.size(), 0);
  prepare(prepared, workspaces);
  // The planner knows no backend.
  const auto stored_bytes = [&](DType dtype) { return size_of(backend_.storage(dtype)); };
  plan_ = plan_memory(graph_, {stored_bytes, workspaces, !options.guard.empty()});
  place(variables, options);
  bind(prepared, options);
  find_collectives();
  if (!collectives_.empty()) kept_ = find_kept_values(graph_, plan_, stored_bytes);
}

void Program::prepare(std::vector<Prepared>& prepared, std::vector<std::int64_t>& workspaces) {
  for (int i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_.node(i);
    if (runs_no_kernel(node)) continue;
    Prepared& p = prepared[std::size_t(i)] = backend_.prepare({graph_, node});
    check(p.refusal.empty(), ErrorKind::kBackendMissing, "backend {} refuses {} (node {}): {}",
          backend_.name(), node.op->name, node.name, p.refusal);
    workspaces[std::size_t(i)] = p.workspace;
  }
}

void Program::place(Variables& variables, const CompileOptions& options) {
  arena_ = options.arena != nullptr ? options.arena->at_least(plan_.arena_bytes)
                                    : backend_.allocate(plan_.arena_bytes);
  if (options.carries == nullptr) own_carries_ = std::make_unique<Carries>(backend_);
  Carries& carries = options.carries != nullptr ? *options.carries : *own_carries_;
  for (int i = 0; i < graph_.size(); ++i) place_leaf(variables, carries, i);
  for (const NamedValue& named : graph_.outputs()) outputs_[named.name] = named.value;
}

void Program::place_leaf(Variables& variables, Carries& carries, int index) {
  const Node& node = graph_.node(index);
  if (node.kind == NodeKind::kInput) inputs_[node.name] = {index};
  if (!persists(node.kind)) return;
  if (node.kind == NodeKind::kCarry) {
    carries_.push_back(carries.place(node.name, node.outputs[0]));
    leaves_[index] = carries_.back().form->memory.get();
  } else {
    leaves_[index] = variables.at(node.name).memory.get();
  }
}

void Program::enter_carries() {
  for (const Carries::Place& place : carries_) place.enter();
}

void Program::bind(const std::vector<Prepared>& prepared, const CompileOptions& options) {
  for (int i = 0; i < graph_.size(); ++i) {
    const Node& node = graph_.node(i);
    if (runs_no_kernel(node)) continue;
    Binding binding;
    for (Value v : node.inputs) binding.inputs.push_back(v.valid() ? ref(v) : TensorRef{});
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      binding.outputs.push_back(ref({i, port}));
    }
    const std::int64_t offset = plan_.workspace_offsets[i];
    if (offset >= 0) binding.workspace = arena_->address() + offset;
    kernels_.push_back(prepared[std::size_t(i)].bind(binding));
    kernel_nodes_.push_back(i);
    kernel_bytes_ += bytes_of(binding) + prepared[std::size_t(i)].holds;
  }
  const TensorRef guard = options.guard.empty() ? TensorRef{} : ref(output(options.guard));
  for (const Update& update : plan_.copies) {
    kernels_.push_back(backend_.copy(ref(update.leaf), ref(update.next), guard));
    kernel_nodes_.push_back(-1);
  }
}

TensorType Program::stored_type(Value v) const {
  return {backend_.storage(graph_.type(v).dtype), graph_.shape(v)};
}

Program::Place Program::place_of(Value v) const {
  const Location& location = plan_.at(v);
  switch (location.kind) {
    case Location::kAbsent:
      return {};
    case Location::kArena:
      return {arena_.get(), location.offset};
    case Location::kLeaf:
      return {leaves_.at(location.leaf), location.offset};
    case Location::kConstant:
      return {constants_.memory(), constants_.offset(location.leaf) + location.offset};
  }
  return {};
}

TensorRef Program::ref(Value v) const {
  const Place place = place_of(v);
  return {place.memory ? place.memory->address() + place.offset : nullptr, stored_type(v)};
}

Value Program::input(const std::string& name) const {
  const auto found = inputs_.find(name);
  check(found != inputs_.end(), ErrorKind::kUsage, "no input is called '{}'", name);
  return found->second;
}

void Program::feed(const std::string& name, std::span<const std::byte> stored) {
  const Value v = input(name);
  const std::int64_t expected = stored_type(v).bytes();
  check(std::ssize(stored) == expected, ErrorKind::kUsage, "input {}: expected {} bytes, got {}",
        name, expected, stored.size());
  arena_->upload(plan_.at(v).offset, stored.data(), expected);
}

void Program::feed(const std::string& name, const Tensor& value) {
  const Value v = input(name);
  const TensorType type = stored_type(v);
  check(value.shape() == type.shape, ErrorKind::kUsage, "input {}: expected {}, got {}", name,
        type.shape.text(), value.shape().text());
  const std::int64_t offset = plan_.at(v).offset;
  if (value.dtype() == type.dtype) return arena_->upload(offset, value.data(), value.bytes());
  const Tensor stored = value.to(type.dtype);
  arena_->upload(offset, stored.data(), stored.bytes());
}

void Program::run() {
  enter_carries();
  if (!step_) step_ = backend_.record(kernels_);
  step_();
}

Value Program::output(const std::string& name) const {
  const auto found = outputs_.find(name);
  check(found != outputs_.end(), ErrorKind::kUsage, "no output is called '{}'", name);
  return found->second;
}

Tensor Program::download(Value v) const {
  Tensor value(stored_type(v));
  const Place place = place_of(v);
  if (place.memory) place.memory->download(place.offset, value.data(), value.bytes());
  return value;
}

Tensor Program::fetch(const std::string& name, bool stored) const {
  const Value v = output(name);
  Tensor value = download(v);
  return stored || value.dtype() == graph_.type(v).dtype ? std::move(value)
                                                         : value.to(graph_.type(v).dtype);
}

void Program::read(const std::string& name, std::span<std::byte> to) const {
  const Value v = output(name);
  const std::int64_t expected = stored_type(v).bytes();
  check(std::ssize(to) == expected, ErrorKind::kUsage, "output {}: expected {} bytes, got {}", name,
        expected, to.size());
  const Place place = place_of(v);
  if (place.memory) place.memory->download(place.offset, to.data(), expected);
}

double Program::scalar(const std::string& name) const {
  const Value v = output(name);
  const Place place = place_of(v);
  check(place.memory != nullptr, ErrorKind::kUsage, "output {}: expected a scalar, got {}", name,
        graph_.type(v).text());
  const DType dtype = stored_type(v).dtype;
  double result = 0;
  std::byte raw[8];
  place.memory->download(place.offset, raw, size_of(dtype));
  convert(raw, dtype, &result, DType::kF64, 1);
  return result;
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
    const int node = kernel_nodes_[k];
    result.push_back({node < 0 ? "update" : graph_.node(node).name,
                      node < 0 ? "copy" : std::string(graph_.node(node).op->name),
                      times[k][std::size_t(repeats / 2)]});
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
    const int index = kernel_nodes_[k];
    if (index < 0 || overwrites_leaf(index)) continue;
    const Node& node = graph_.node(index);
    // Read before the node runs, for its output may take the place of an input.
    std::vector<Tensor> inputs;
    for (Value v : node.inputs) inputs.push_back(v.valid() ? download(v) : Tensor());
    backend_.run({&kernels_[k], 1});
    if (auto found = inspect_outputs(index)) {
      found->inputs = inputs_text(node, inputs);
      found->part =
          std::ranges::count_if(collectives_, [&](const Collective& m) { return m.end <= k; });
      return found;
    }
  }
  return std::nullopt;
}

}  // namespace keel

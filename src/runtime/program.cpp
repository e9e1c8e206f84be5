#include "src/runtime/program.h"

#include <algorithm>

#include "src/graph/verify.h"
#include "src/ops/shard_parts.h"
#include "src/passes/pipeline.h"

namespace keel {

bool runs_no_kernel(const Node& node) { return node.kind != NodeKind::kOp || is_view(node); }

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
  join(prepared, options);
  std::vector<NodeSpan> at_once;
  for (const JoinedRows& rows : joined_) at_once.push_back({rows.first, rows.last});
  // The planner knows no backend.
  const auto stored_bytes = [&](DType dtype) { return size_of(backend_.storage(dtype)); };
  plan_ = plan_memory(graph_, {stored_bytes, workspaces, !options.guard.empty(), at_once});
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

// A program that runs in parts joins nothing: a part may end between two kernels.
void Program::join(const std::vector<Prepared>& prepared, const CompileOptions& options) {
  const bool has_parts = std::ranges::any_of(graph_.outputs(), [](const NamedValue& output) {
    return output.name.starts_with(kCollective);
  });
  if (options.join_rows && !has_parts) joined_ = find_joined_rows(graph_, prepared);
}

Binding Program::binding_of(int index) const {
  const Node& node = graph_.node(index);
  Binding binding;
  for (Value v : node.inputs) binding.inputs.push_back(v.valid() ? ref(v) : TensorRef{});
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    binding.outputs.push_back(ref({index, port}));
  }
  const std::int64_t offset = plan_.workspace_offsets[index];
  if (offset >= 0) binding.workspace = arena_->address() + offset;
  return binding;
}

void Program::add_kernel(Kernel kernel, const NodeSpan& nodes, std::int64_t bytes) {
  kernels_.push_back(std::move(kernel));
  kernel_nodes_.push_back(nodes);
  kernel_bytes_ += bytes;
}

void Program::bind(const std::vector<Prepared>& prepared, const CompileOptions& options) {
  auto joined = joined_.begin();
  for (int i = 0; i < graph_.size(); ++i) {
    const bool begins = joined != joined_.end() && joined->first == i;
    const int last = begins ? joined->last : i;
    std::vector<Binding> bindings;
    std::int64_t bytes = 0;
    for (int node = i; node <= last; ++node) {
      bindings.push_back(binding_of(node));
      bytes += bytes_of(bindings.back()) + prepared[std::size_t(node)].holds;
    }
    if (begins) {
      add_kernel(join_rows(*joined++, prepared, bindings), {i, last}, bytes);
    } else if (!runs_no_kernel(graph_.node(i))) {
      add_kernel(prepared[std::size_t(i)].bind(bindings[0]), {i, i}, bytes);
    }
    i = last;
  }
  const TensorRef guard = options.guard.empty() ? TensorRef{} : ref(output(options.guard));
  for (const Update& update : plan_.copies) {
    add_kernel(backend_.copy(ref(update.leaf), ref(update.next), guard), {-1, -1}, 0);
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

}  // namespace keel

#include "bench/norm_runner.h"

#include <algorithm>
#include <deque>
#include <map>

#include "src/ops/norm/norm.h"

namespace keel::bench {
namespace {

// Memory of a backend between two guards whose bytes are all ones: NaN in every floating type.
class GuardedBuffer {
 public:
  GuardedBuffer(Backend& backend, std::int64_t bytes)
      : bytes_(bytes), memory_(backend.allocate(bytes + 2 * kGuard)) {
    const std::vector<std::byte> ones(std::size_t(bytes + 2 * kGuard), std::byte{0xFF});
    memory_->upload(0, ones.data(), bytes + 2 * kGuard);
  }
  std::byte* address() const { return memory_->address() + kGuard; }
  void write(const Tensor& value) { memory_->upload(kGuard, value.data(), value.bytes()); }
  void read(Tensor& value) const { memory_->download(kGuard, value.data(), value.bytes()); }
  bool intact() const {
    std::byte guards[2 * kGuard];
    memory_->download(0, guards, kGuard);
    memory_->download(kGuard + bytes_, guards + kGuard, kGuard);
    return std::ranges::all_of(guards, [](std::byte b) { return b == std::byte{0xFF}; });
  }

 private:
  static constexpr std::int64_t kGuard = 256;
  std::int64_t bytes_;
  std::unique_ptr<Memory> memory_;
};

// Every value of a graph in a buffer of its own, and its nodes run one after the other.
class GuardedRun {
 public:
  GuardedRun(Backend& backend, const Graph& graph) : backend_(backend), graph_(graph) {}

  void set(Value v, const Tensor& value) {
    check(value.shape() == graph_.shape(v), ErrorKind::kUsage, "{}: expected {}, got {}",
          graph_.node(v).name, graph_.shape(v).text(), value.shape().text());
    buffer(v).write(value.to(type(v).dtype));
  }

  Tensor get(Value v) {
    if (!v.valid()) return Tensor(DType::kF32, Shape{0});
    Tensor value(type(v));
    buffer(v).read(value);
    return value;
  }

  void run(int index, bool in_place) {
    const Node& node = graph_.node(index);
    if (in_place) {
      for (const InPlace& claim : node.op->in_place) {
        places_[{index, claim.output}] = &buffer(node.inputs[std::size_t(claim.input)]);
      }
    }
    const Prepared prepared = backend_.prepare({graph_, node});
    check(prepared.refusal.empty(), ErrorKind::kBackendMissing, "backend {} refuses {}: {}",
          backend_.name(), node.op->name, prepared.refusal);
    workspace_ = std::max(workspace_, prepared.workspace);
    Binding binding;
    for (Value v : node.inputs) binding.inputs.push_back(v.valid() ? ref(v) : TensorRef{});
    for (int port = 0; port < int(node.outputs.size()); ++port) {
      binding.outputs.push_back(ref({index, port}));
    }
    binding.workspace = buffers_.emplace_back(backend_, prepared.workspace).address();
    const Kernel kernel = prepared.bind(binding);
    backend_.run({&kernel, 1});
  }

  bool intact() const {
    return std::ranges::all_of(buffers_, [](const GuardedBuffer& b) { return b.intact(); });
  }
  std::int64_t workspace() const { return workspace_; }

 private:
  TensorType type(Value v) const {
    return {backend_.storage(graph_.type(v).dtype), graph_.shape(v)};
  }
  GuardedBuffer& buffer(Value v) {
    GuardedBuffer*& place = places_[v];
    if (place == nullptr) place = &buffers_.emplace_back(backend_, type(v).bytes());
    return *place;
  }
  TensorRef ref(Value v) {
    return {graph_.shape(v) == Shape{0} ? nullptr : buffer(v).address(), type(v)};
  }

  Backend& backend_;
  const Graph& graph_;
  std::deque<GuardedBuffer> buffers_;
  std::map<Value, GuardedBuffer*> places_;
  std::int64_t workspace_ = 0;
};

// A graph with one norm and its explicit backward for a given dy.
struct NormGraph {
  Graph graph;
  std::vector<std::pair<Value, const Tensor*>> feeds;
  Value y;
  std::vector<Value> gradients;  // of the inputs by place

  NormGraph(const NormBuild& build, const NormData& data) {
    NormInputs inputs;
    inputs.x = feed("x", data.x);
    if (data.gain) inputs.gain = feed("gain", *data.gain);
    if (data.bias) inputs.bias = feed("bias", *data.bias);
    for (std::size_t i = 0; i < data.state.size(); ++i) {
      inputs.state.push_back(feed(fmt::format("state{}", i), data.state[i]));
    }
    for (const auto& [name, value] : data.more) inputs.more[name] = feed(name, value);
    const Value dy = feed("dy", data.dy);
    const int first = graph.size();
    y = build(graph, inputs, data.eps);
    feed_leaves(first, data);
    add_backward(dy);
  }

 private:
  Value feed(const std::string& name, const Tensor& value) {
    feeds.emplace_back(graph.input(name, {DType::kF32, value.shape()}), &value);
    return feeds.back().first;
  }

  // The leaves from node `first` on, which are the build's own.
  void feed_leaves(int first, const NormData& data) {
    std::size_t states = 0;
    for (int i = first; i < graph.size(); ++i) {
      const Node& node = graph.node(i);
      const Tensor* given = nullptr;
      if (node.kind == NodeKind::kOp) continue;
      if (node.kind == NodeKind::kConstant) given = node.constant.get();
      if (node.kind == NodeKind::kState && states < data.state.size()) {
        given = &data.state[states++];
      }
      if (data.gain && node.name.ends_with("/gain")) given = &*data.gain;
      if (data.bias && node.name.ends_with("/bias")) given = &*data.bias;
      for (const auto& [name, value] : data.more) {
        if (node.name.ends_with("/" + name)) given = &value;
      }
      feeds.emplace_back(Value{i}, given ? given : &initial(node));
    }
  }

  const Tensor& initial(const Node& node) {
    Tensor& value = owned_.emplace_back(node.outputs[0]);
    if (node.initializer) node.initializer(value, Philox(0, 0));
    return value;
  }

  void add_backward(Value dy) {
    const Node& node = graph.node(y.node);
    std::vector<Value> output_gradients(node.outputs.size());
    output_gradients.front() = dy;
    bool needed[16];  // of all inputs that a norm has at most
    std::ranges::fill(needed, true);
    StateValues states;
    BackwardContext context(graph, y.node, output_gradients, {needed, node.inputs.size()}, states);
    node.op->backward(context);
    gradients.assign(context.result().begin(), context.result().end());
    gradients.resize(std::max<std::size_t>(gradients.size(), AffineGradient::kDbias + 1));
  }

  std::deque<Tensor> owned_;
};

// Inputs are only read.
void check_unchanged(GuardedRun& run, const NormGraph& norm) {
  for (const auto& [value, tensor] : norm.feeds) {
    const Tensor now = run.get(value), before = tensor->to(now.dtype());
    check(std::memcmp(now.data(), before.data(), std::size_t(now.bytes())) == 0,
          ErrorKind::kCheckFailed, "a kernel wrote over its input {}", norm.graph.node(value).name);
  }
}

}  // namespace

NormResult run_norm(Backend& backend, const NormBuild& build, const NormData& data, bool in_place) {
  const NormGraph norm(build, data);
  GuardedRun run(backend, norm.graph);
  for (const auto& [value, tensor] : norm.feeds) run.set(value, *tensor);
  for (int i = 0; i < norm.graph.size(); ++i) {
    const Node& node = norm.graph.node(i);
    if (node.kind == NodeKind::kConstant) run.set({i, 0}, *node.constant);
    if (node.kind == NodeKind::kOp) run.run(i, in_place);
  }
  const Node& node = norm.graph.node(norm.y);
  NormResult result{.op = node.op, .outputs = {}, .gradients = {}, .workspace = run.workspace()};
  result.offset = node.attrs.number("offset").value_or(0);
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    result.outputs.push_back(run.get(norm.y.at(port)));
  }
  for (Value v : norm.gradients) result.gradients.push_back(run.get(v));
  for (std::size_t i = AffineInput::kBias + 1; i < node.inputs.size(); ++i) {
    if (!norm.gradients[i].valid()) continue;
    result.more.emplace(input_name(*node.op, int(i)), run.get(node.inputs[i]));
  }
  check(run.intact(), ErrorKind::kCheckFailed, "a kernel of {} wrote outside of its outputs",
        node.op->name);
  if (!in_place) check_unchanged(run, norm);
  return result;
}

}  // namespace keel::bench

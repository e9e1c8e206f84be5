#include "src/runtime/interpreter.h"

#include <cstring>

namespace keel {

Interpreter::Interpreter(Backend& backend, const Graph& graph, std::uint64_t seed)
    : backend_(backend), graph_(graph) {
  for (int i = 0; i < graph.size(); ++i) {
    const Node& node = graph.node(i);
    values_.emplace_back();
    for (const TensorType& type : node.outputs) {
      Tensor initial(type);
      if (node.constant) initial = node.constant->clone();
      if (node.initializer) node.initializer(initial, Philox(seed, stream_of(node.name)));
      values_.back().push_back(initial.to(backend.storage(type.dtype)));
    }
  }
}

void Interpreter::feed(const std::string& name, const Tensor& fed) {
  Tensor& input = value(graph_.find_leaf(name));
  input = fed.to(input.dtype());
}

void Interpreter::run() {
  for (int i = 0; i < graph_.size(); ++i) {
    if (graph_.node(i).kind == NodeKind::kOp) run_node(i);
  }
  outputs_.clear();
  for (const NamedValue& output : graph_.outputs()) {
    outputs_[output.name] = value(output.value).clone();
  }
  std::vector<Tensor> next;
  for (const Update& update : graph_.updates()) next.push_back(value(update.next).clone());
  for (std::size_t i = 0; i < next.size(); ++i) {
    value(graph_.updates()[i].leaf) = std::move(next[i]);
  }
}

void Interpreter::run_node(int index) {
  const Node& node = graph_.node(index);
  for (int port = 0; is_view(node) && port < int(node.outputs.size()); ++port) {
    const Tensor& source = value(node.inputs[0]);
    Tensor& view = value({index, port});
    const std::int64_t offset = view_offset(node, port) * size_of(source.dtype());
    std::memcpy(view.data(), source.data() + offset, std::size_t(view.bytes()));
  }
  if (is_view(node)) return;
  Binding binding;
  for (Value v : node.inputs) binding.inputs.push_back(v.valid() ? ref(v) : TensorRef{});
  for (int port = 0; port < int(node.outputs.size()); ++port) {
    binding.outputs.push_back(ref({index, port}));
  }
  const Prepared prepared = backend_.prepare({graph_, node});
  check(prepared.refusal.empty(), ErrorKind::kBackendMissing, "{}", prepared.refusal);
  Tensor workspace(DType::kU8, Shape{prepared.workspace});
  binding.workspace = workspace.data();
  const Kernel kernel = prepared.bind(binding);
  backend_.run({&kernel, 1});
}

TensorRef Interpreter::ref(Value v) {
  Tensor& t = value(v);
  return {t.elements() > 0 ? t.data() : nullptr, t.type()};
}

const Tensor& Interpreter::output(const std::string& name) const { return outputs_.at(name); }

const Tensor& Interpreter::leaf(const std::string& name) const {
  return values_[std::size_t(graph_.find_leaf(name).node)][0];
}

}  // namespace keel

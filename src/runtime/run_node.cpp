#include "src/runtime/run_node.h"

#include <vector>

namespace keel {
namespace {

// Fills memory with NaN of every floating type: an arena may hold anything where a kernel writes.
void poison(Memory& memory, std::int64_t bytes) {
  const std::vector<std::uint8_t> all_ones(std::size_t(bytes), 0xFF);
  memory.upload(0, all_ones.data(), bytes);
}

// Memory for one value; an absent one, of the shape (0), has no address.
class Buffer {
 public:
  Buffer(Backend& backend, const TensorType& stored)
      : type_(stored), memory_(backend.allocate(stored.bytes())) {}

  void write(const Tensor& value) {
    if (value.dtype() == type_.dtype) return memory_->upload(0, value.data(), value.bytes());
    const Tensor stored = value.to(type_.dtype);
    memory_->upload(0, stored.data(), stored.bytes());
  }
  void poison() { keel::poison(*memory_, type_.bytes()); }
  Tensor read() const {
    Tensor value(type_);
    memory_->download(0, value.data(), value.bytes());
    return value;
  }
  TensorRef ref() const { return {type_.bytes() > 0 ? memory_->address() : nullptr, type_}; }

 private:
  TensorType type_;
  std::unique_ptr<Memory> memory_;
};

TensorType stored_as(const Backend& backend, const TensorType& declared) {
  return {backend.storage(declared.dtype), declared.shape};
}

// The elements of `value` from `offset` on, as a tensor of this type.
Tensor part_of(const Tensor& value, std::int64_t offset, const TensorType& type) {
  Tensor result(type);
  convert(value.data() + offset * size_of(value.dtype()), value.dtype(), result.data(), type.dtype,
          result.elements());
  return result;
}

}  // namespace

NodeRun run_node(Backend& backend, const NodeContext& context,
                 std::span<const Tensor* const> inputs) {
  const Node& node = context.node;
  NodeRun result;
  for (int port = 0; is_view(node) && port < int(node.outputs.size()); ++port) {
    const TensorType stored = stored_as(backend, node.outputs[std::size_t(port)]);
    result.outputs.push_back(part_of(*inputs[0], view_offset(node, port), stored));
  }
  if (is_view(node)) return result;
  const Prepared prepared = backend.prepare(context);
  if (!prepared.refusal.empty()) return {{}, prepared.refusal};
  std::vector<Buffer> read, written;
  Binding binding;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      binding.inputs.emplace_back();
      continue;
    }
    read.emplace_back(backend, stored_as(backend, context.graph.type(node.inputs[i])));
    read.back().write(*inputs[i]);
    binding.inputs.push_back(read.back().ref());
  }
  for (const TensorType& type : node.outputs) {
    binding.outputs.push_back(written.emplace_back(backend, stored_as(backend, type)).ref());
    written.back().poison();
  }
  const auto workspace = backend.allocate(prepared.workspace);
  poison(*workspace, prepared.workspace);
  binding.workspace = workspace->address();
  const Kernel kernel = prepared.bind(binding);
  backend.run({&kernel, 1});
  for (const Buffer& buffer : written) result.outputs.push_back(buffer.read());
  return result;
}

NodeRun run_node(Backend& backend, const Graph& graph, int index,
                 std::span<const Tensor* const> inputs) {
  return run_node(backend, {graph, graph.node(index)}, inputs);
}

}  // namespace keel

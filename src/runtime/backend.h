// The one interface between the engine and a backend: where memory comes from, and how a node
// becomes a kernel bound to fixed addresses.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "src/core/tensor.h"
#include "src/graph/graph.h"
#include "src/ops/matmul.h"

namespace keel {

// A block of a backend's memory. Addresses of a device are not dereferenced by the engine.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* address() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual void upload(std::int64_t offset, const void* src, std::int64_t bytes) = 0;
  virtual void download(std::int64_t offset, void* dst, std::int64_t bytes) const = 0;
  // Makes the block `bytes` long where it lies, when it is shorter; what it holds stays, and the
  // bytes that are added are zero. False when it cannot: then nothing has changed.
  virtual bool grow(std::int64_t bytes) { return bytes <= this->bytes(); }
};

// A block of the host's memory that a backend copies to while the host goes on.
class Readback {
 public:
  virtual ~Readback() = default;
  // Copies to byte `offset` when all work before it is done; returns at once.
  virtual void receive(std::int64_t offset, const void* src, std::int64_t bytes) = 0;
  // Whether everything that was received so far is there.
  virtual bool is_complete() const = 0;
  // The block, when it is complete; waits for that.
  virtual const std::byte* wait() = 0;
};

// A tensor as a kernel sees it. `type.dtype` is the type it is stored in, which a backend may have
// widened. No data: the input or output is absent.
struct TensorRef {
  void* data = nullptr;
  TensorType type;

  explicit operator bool() const { return data != nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t elements() const { return type.shape.elements(); }
};

// The fixed addresses of one node.
struct Binding {
  std::vector<TensorRef> inputs, outputs;
  void* workspace = nullptr;
};

// A kernel with everything it needs bound in; calling it must not allocate, throw or lock.
using Kernel = std::function<void()>;

// What a backend knows of a node before memory is planned.
struct Prepared {
  std::function<Kernel(const Binding&)> bind;
  std::int64_t workspace = 0;  // bytes, alive while the kernel runs
  std::string refusal = {};    // why the backend does not run this node; empty: it does
  std::int64_t holds = 0;  // bytes of the host, about, that a bound kernel has besides addresses
};

// A node whose kernel is `run`, called with the node's addresses.
template <class Run>
Prepared kernel_of(Run run, std::int64_t workspace = 0) {
  return {[run](const Binding& b) -> Kernel { return [run, b] { run(b); }; },
          workspace,
          {},
          std::int64_t(sizeof(Run))};
}

inline Prepared refuse(std::string reason) { return {nullptr, 0, std::move(reason)}; }

// A node with the types of its surroundings, as kernels are prepared from it.
struct NodeContext {
  const Graph& graph;
  const Node& node;

  bool has(int i) const {
    return i < int(node.inputs.size()) && node.inputs[std::size_t(i)].valid();
  }
  const TensorType& input(int i) const { return graph.type(node.inputs[std::size_t(i)]); }
  const TensorType& output(int j = 0) const { return node.outputs[std::size_t(j)]; }
  template <class T>
  const T& attrs() const {
    return node.attrs.as<T>();
  }
};

// A backend's table of kernels: the op's name, and how one of its nodes is prepared.
using Prepare = Prepared (*)(const NodeContext&);

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  // One line on hardware, instruction set, library versions and threads.
  virtual std::string description() const = 0;
  // The type that elements of `declared` are stored in.
  virtual DType storage(DType declared) const { return declared; }
  // Whether convolutions and pooling are faster on images stored as (n, h, w, c).
  virtual bool prefers_channels_last() const { return false; }
  // The panels in which a product reads its second factor best (src/passes/pipeline.h); width 0: in
  // none.
  virtual PanelForm preferred_panels(const NodeContext&) const { return {}; }
  virtual Prepared prepare(const NodeContext& context) = 0;
  // Zero-filled, aligned to kAlignment. Throws Error{kMemory} naming the bytes asked for.
  virtual std::unique_ptr<Memory> allocate(std::int64_t bytes) = 0;
  // The same for a block that is likely to have to grow: a backend that can leaves room after it.
  virtual std::unique_ptr<Memory> allocate_growing(std::int64_t bytes) { return allocate(bytes); }
  virtual std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) = 0;
  // A kernel that copies one tensor over another of equal type, unless the scalar `guard` is given
  // and not finite.
  virtual Kernel copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) = 0;
  // Runs kernels in order and returns when they have run.
  virtual void run(std::span<const Kernel> kernels) = 0;
  // Seconds that `body`, which runs programs of this backend, takes when all work before it is
  // done: by the host's clock, or by a device's own, which then starts with cold caches
  // (times_cold).
  virtual double seconds(const std::function<void()>& body);
  virtual bool times_cold() const { return false; }
  // One kernel that runs them all, made for being run again and again; it may return before they
  // have run. They live as long as it does.
  virtual Kernel record(std::span<const Kernel> kernels) {
    return [this, kernels] { run(kernels); };
  }
};

}  // namespace keel

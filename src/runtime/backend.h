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

// A block of a backend's memory. The engine never dereferences addresses of a device.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* address() const = 0;
  virtual std::int64_t bytes() const = 0;
  virtual void upload(std::int64_t offset, const void* src, std::int64_t bytes) = 0;
  virtual void download(std::int64_t offset, void* dst, std::int64_t bytes) const = 0;
  // Grows the block in place to `bytes` if it is shorter. Its content stays and the added bytes are
  // zero. Returns false, and changes nothing, if the block cannot grow.
  virtual bool grow(std::int64_t bytes) { return bytes <= this->bytes(); }
};

// A block of host memory that a backend copies to while the host continues.
class Readback {
 public:
  virtual ~Readback() = default;
  // Copies to byte `offset` once all earlier work is done; returns at once.
  virtual void receive(std::int64_t offset, const void* src, std::int64_t bytes) = 0;
  // Whether all copies requested so far have arrived.
  virtual bool is_complete() const = 0;
  // Waits until all copies have arrived, then returns the block.
  virtual const std::byte* wait() = 0;
};

// A tensor as a kernel sees it. `type.dtype` is the storage type, which a backend may have widened.
// A null `data` means that the input or output is absent.
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
  bool is_read_next = false;  // whether the result is read at once, and should stay in a cache
};

// A kernel with everything it needs bound in; calling it must not allocate, throw or lock. It reads
// and writes no tensor but those of its Binding: backends order kernels only by these.
using Kernel = std::function<void()>;

// A kernel's work on the elements [first, last) of its result.
using ElementWork = std::function<void(std::int64_t first, std::int64_t last)>;

// Shows a norm some rows of arrays that are not contiguous: calls body(binding) with a binding in
// which rows [first, last) lie where contiguous arrays have them, and then writes back what the
// body has written. Rows are at most kWindowElements elements, or one row that is longer.
using RowWindow = std::function<void(std::int64_t first, std::int64_t last,
                                     const std::function<void(const Binding&)>& body)>;
inline constexpr std::int64_t kWindowElements = 8 * 1024;

// Kernels that run on the rows of a norm before it reads them, and after it has written them, in
// this order (src/runtime/joined_rows.h), and the window through which it sees rows, if any.
struct Neighbours {
  std::vector<ElementWork> before, after;
  RowWindow window = {};
};

// The result of preparing a node, before memory is planned.
struct Prepared {
  std::function<Kernel(const Binding&)> bind;
  std::int64_t workspace = 0;  // bytes, alive while the kernel runs
  std::string refusal = {};    // why the backend does not run this node; empty: it does
  std::int64_t holds = 0;  // bytes of the host, about, that a bound kernel holds beside addresses
  // Of a kernel that may run on any ranges of its result's elements that begin and end at multiples
  // of `row`, and of inputs as large as the result reads only the same elements.
  std::function<ElementWork(const Binding&)> bind_elements = {};
  // Of a norm that goes through rows of `row` elements; what it reads and writes of the size of x,
  // it does row by row, and no other row is needed.
  std::function<Kernel(const Binding&, const Neighbours&)> bind_rows = {};
  std::int64_t row = 1;
};

// A node whose kernel is `run`, called with the node's addresses.
template <class Run>
Prepared kernel_of(Run run, std::int64_t workspace = 0) {
  return {[run](const Binding& b) -> Kernel { return [run, b] { run(b); }; },
          workspace,
          {},
          std::int64_t(sizeof(Run))};
}

// The same for a kernel that works on elements: run(binding, first, last) computes a range of them,
// and all(binding, run) shares all out among threads.
template <class Run, class All>
Prepared element_kernel_of(Run run, All all, std::int64_t row = 1) {
  Prepared prepared = kernel_of([run, all](const Binding& b) { all(b, run); });
  prepared.bind_elements = [run](const Binding& b) -> ElementWork {
    return [run, b](std::int64_t first, std::int64_t last) { run(b, first, last); };
  };
  prepared.row = row;
  return prepared;
}

// The same for a norm that goes through rows: run(binding, neighbours) runs the neighbours on each
// of them.
template <class Run>
Prepared row_kernel_of(std::int64_t row, Run run, std::int64_t workspace = 0) {
  Prepared prepared = kernel_of([run](const Binding& b) { run(b, Neighbours()); }, workspace);
  prepared.bind_rows = [run](const Binding& b, const Neighbours& neighbours) -> Kernel {
    return [run, b, neighbours] { run(b, neighbours); };
  };
  prepared.row = row;
  return prepared;
}

inline Prepared refuse(std::string reason) { return {nullptr, 0, std::move(reason)}; }

// A node together with the graph that gives the types of its inputs: the argument of Prepare.
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

// How a backend prepares a node of one op; a row of its table of kernels.
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
  // The panels in which a product reads its second factor fastest (src/passes/pipeline.h).
  // Width 0 stands for no panels.
  virtual PackedLayout preferred_packing(const NodeContext&) const { return {}; }
  // Whether a linear_cross_entropy is faster together with its backward (src/passes/pipeline.h).
  virtual bool prefers_loss_step(const NodeContext&) const { return false; }
  // Whether the kernel of a node can round output 0 to bf16 by itself (Graph::narrow_result).
  virtual bool narrows_result(const NodeContext&) const { return false; }
  virtual Prepared prepare(const NodeContext& context) = 0;
  // Zero-filled, aligned to kAlignment. Throws Error{kMemory} naming the bytes asked for.
  virtual std::unique_ptr<Memory> allocate(std::int64_t bytes) = 0;
  // The same for a block that will probably grow: a backend that can reserves room after it.
  virtual std::unique_ptr<Memory> allocate_growing(std::int64_t bytes) { return allocate(bytes); }
  virtual std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) = 0;
  // Makes a kernel that copies one tensor over another of equal type. It does nothing when the
  // scalar `guard` is given and is not finite.
  virtual Kernel copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) = 0;
  // Runs kernels in order and returns when they have run.
  virtual void run(std::span<const Kernel> kernels) = 0;
  // Seconds that `body`, which runs programs of this backend, takes after all earlier work is
  // done. The host's clock measures it, or a device's own clock; the device then starts with
  // cold caches (times_cold).
  virtual double seconds(const std::function<void()>& body);
  virtual bool times_cold() const { return false; }
  // Makes one kernel that runs all of these and is meant to be run many times. It may return before
  // they have run. The kernels must live as long as it does.
  virtual Kernel record(std::span<const Kernel> kernels) {
    return [this, kernels] { run(kernels); };
  }
};

}  // namespace keel

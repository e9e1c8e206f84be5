// The norms of the cuda backend by themselves, for programs that bring streams and memory of their
// own. A bound kernel starts on the stream of the entered OnStream (runtime.h).
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

// Prepares the ops of src/ops/norm/norm_ops.h in float32; refuses every other op. It has neither
// memory nor a stream: all but prepare() throws Error{kInternal}.
class NormBackend : public Backend {
 public:
  std::string_view name() const override { return "cuda"; }
  std::string description() const override { return "CUDA kernels on a caller's stream"; }
  Prepared prepare(const NodeContext& context) override;
  std::unique_ptr<Memory> allocate(std::int64_t bytes) override;
  std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) override;
  Kernel copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) override;
  void run(std::span<const Kernel> kernels) override;
};

}  // namespace keel::cuda

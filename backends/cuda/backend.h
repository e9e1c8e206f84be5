// The cuda backend: float32 training on NVIDIA GPUs with cuBLASLt and kernels of our own; the step
// is recorded as a CUDA graph and replayed. Every backend has a stream of its own.
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

struct Options {
  int device = 0;     // its number, as CUDA counts
  bool tf32 = false;  // matrix products round their factors to 10 bits of mantissa
};

// The number of devices that CUDA counts, at least 1. Throws Error{kBackendMissing} that says what
// is missing if there is none.
int device_count();

class Device;

class CudaBackend : public Backend {
 public:
  // Throws Error{kBackendMissing} without a usable GPU.
  explicit CudaBackend(const Options& options);
  std::string_view name() const override { return "cuda"; }
  std::string description() const override;
  bool tf32() const;  // that of its options
  Prepared prepare(const NodeContext& context) override;
  bool narrows_result(const NodeContext& context) const override;
  std::unique_ptr<Memory> allocate(std::int64_t bytes) override;
  std::unique_ptr<Readback> allocate_readback(std::int64_t bytes) override;
  Kernel copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) override;
  void run(std::span<const Kernel> kernels) override;
  double seconds(const std::function<void()>& body) override;
  bool times_cold() const override { return true; }
  // The first run is not recorded, because libraries initialize themselves in it.
  Kernel record(std::span<const Kernel> kernels) override;

 private:
  std::shared_ptr<Device> device_;  // its memory shares ownership
};

}  // namespace keel::cuda

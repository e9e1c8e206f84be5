#include "backends/cuda/backend.h"

#include <utility>

#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/runtime.h"
#include "src/runtime/kernel_table.h"

namespace keel::cuda {
namespace {

const KernelTypeTable kKernelTypes{.usual = floating_kernel(DType::kF32)};

#include "src/runtime/kernel_table.inc"

class DeviceMemory : public Memory {
 public:
  explicit DeviceMemory(std::int64_t bytes) : memory_(cuda::allocate(bytes)), bytes_(bytes) {}
  ~DeviceMemory() override { release(memory_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* address() const override { return memory_; }
  std::int64_t bytes() const override { return bytes_; }
  void upload(std::int64_t offset, const void* src, std::int64_t bytes) override {
    if (bytes > 0) cuda::upload(memory_ + offset, src, bytes);
  }
  void download(std::int64_t offset, void* dst, std::int64_t bytes) const override {
    if (bytes > 0) cuda::download(dst, memory_ + offset, bytes);
  }

 private:
  std::byte* memory_;
  std::int64_t bytes_;
};

// The kernels, fewer where one can do the work of several.
std::vector<Kernel> joined(std::span<const Kernel> kernels) {
  std::vector<Kernel> result;
  for (const Kernel& kernel : kernels) {
    const bool is_joined = !result.empty() && (join_updates(result.back(), kernel) ||
                                               join_sums(result.back(), kernel));
    if (!is_joined) result.push_back(kernel);
  }
  return result;
}

// A step that is run again and again: as it is, then recorded, then replayed.
struct Step {
  std::vector<Kernel> kernels;
  bool has_run = false;
  Kernel recorded = {};

  void run() {
    if (!std::exchange(has_run, true)) {
      for (const Kernel& kernel : kernels) kernel();
      return;
    }
    if (!recorded) recorded = cuda::record(kernels);
    recorded();
  }
};

}  // namespace

CudaBackend::CudaBackend(const Options& options) {
  require_device();
  set_tf32(options.tf32);
}

std::string CudaBackend::description() const { return device_text(); }

Prepared CudaBackend::prepare(const NodeContext& context) {
  return prepare_from(kernel_table(), *this, context);
}

std::unique_ptr<Memory> CudaBackend::allocate(std::int64_t bytes) {
  return std::make_unique<DeviceMemory>(bytes);
}

std::unique_ptr<Readback> CudaBackend::allocate_readback(std::int64_t bytes) {
  return cuda::allocate_readback(bytes);
}

Kernel CudaBackend::copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) {
  check(!guard || guard.type.dtype == DType::kF32, ErrorKind::kBackendMissing,
        "[copy] guard: expected f32, got {}", name_of(guard.type.dtype));
  return [=] { copy_guarded(dst, src, guard); };
}

void CudaBackend::run(std::span<const Kernel> kernels) {
  for (const Kernel& kernel : kernels) kernel();
  synchronize();
}

double CudaBackend::seconds(const std::function<void()>& body) { return cuda::seconds(body); }

Kernel CudaBackend::record(std::span<const Kernel> kernels) {
  return [step = std::make_shared<Step>(joined(kernels))] { step->run(); };
}

}  // namespace keel::cuda

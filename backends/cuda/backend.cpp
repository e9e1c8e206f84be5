#include "backends/cuda/backend.h"

#include <utility>

#include "backends/cuda/dependencies.h"
#include "backends/cuda/kernels/kernels.h"
#include "backends/cuda/matmul.h"
#include "backends/cuda/runtime.h"
#include "src/runtime/kernel_types.h"

namespace keel::cuda {
namespace {

// Only norms give bf16, among the kernels that may.
const KernelTypeTable kKernelTypes{.usual = floating_kernel(DType::kF32), .others = narrow_types()};

#include "src/runtime/kernel_table.inc"

class DeviceMemory : public Memory {
 public:
  DeviceMemory(std::shared_ptr<Device> device, std::int64_t bytes)
      : device_(std::move(device)), memory_(device_->allocate(bytes)), bytes_(bytes) {}
  ~DeviceMemory() override { device_->release(memory_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* address() const override { return memory_; }
  std::int64_t bytes() const override { return bytes_; }
  void upload(std::int64_t offset, const void* src, std::int64_t bytes) override {
    if (bytes > 0) device_->upload(memory_ + offset, src, bytes);
  }
  void download(std::int64_t offset, void* dst, std::int64_t bytes) const override {
    if (bytes > 0) device_->download(dst, memory_ + offset, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  std::byte* memory_;
  std::int64_t bytes_;
};

bool joins(const Kernel& kernel) { return is_update(kernel) || is_sum(kernel) || is_copy(kernel); }

bool join(Kernel& a, const Kernel& b) {
  return join_updates(a, b) || join_sums(a, b) || join_copies(a, b);
}

// Merges a kernel into an earlier one, if one can do the work of both, past kernels that may as
// well run after it. A kernel that joins another uses no workspace of its own.
bool join_earlier(std::vector<Kernel>& earlier, const Kernel& kernel) {
  const auto* const placed = kernel.target<PlacedKernel>();
  if (placed == nullptr || !joins(placed->run)) return false;
  std::vector<Access> own = placed->accesses;
  std::erase_if(own, [](const Access& access) { return access.is_workspace; });
  for (std::size_t i = earlier.size(); i-- > 0;) {
    auto* const other = earlier[i].target<PlacedKernel>();
    if (other == nullptr) return false;
    if (join(other->run, placed->run)) {
      other->accesses.insert(other->accesses.end(), own.begin(), own.end());
      return true;
    }
    if (interfere(other->accesses, own)) return false;
  }
  return false;
}

// The kernels, fewer where one can do the work of several.
std::vector<Kernel> joined(std::span<const Kernel> kernels) {
  std::vector<Kernel> result;
  for (const Kernel& kernel : kernels) {
    if (!join_earlier(result, kernel)) result.push_back(kernel);
  }
  return result;
}

// A step that is run again and again: as it is, then recorded, then replayed.
struct Step {
  std::shared_ptr<Device> device;
  std::vector<Kernel> kernels;
  bool has_run = false;
  Kernel recorded = {};

  void run() {
    const OnDevice here(*device);
    if (!std::exchange(has_run, true)) {
      for (const Kernel& kernel : kernels) kernel();
      return;
    }
    if (!recorded) recorded = device->record(kernels, dependencies_of(kernels));
    recorded();
  }
};

}  // namespace

CudaBackend::CudaBackend(const Options& options) : device_(std::make_shared<Device>(options)) {}

std::string CudaBackend::description() const {
  std::string text = device_->text() + ", " + product_library();
  const std::string convolutions = convolution_library();
  return convolutions.empty() ? text : text + ", " + convolutions;
}

bool CudaBackend::tf32() const { return device_->tf32(); }

Prepared CudaBackend::prepare(const NodeContext& context) {
  const OnDevice here(*device_);
  Prepared prepared = prepare_from(kernel_table(), *this, context);
  if (!prepared.refusal.empty()) return prepared;
  prepared.bind = [bind = std::move(prepared.bind),
                   workspace = prepared.workspace](const Binding& b) -> Kernel {
    return PlacedKernel{bind(b), accesses_of(b, workspace)};
  };
  return prepared;
}

bool CudaBackend::narrows_result(const NodeContext& context) const {
  return keel::narrows_result(kernel_table(), context);
}

std::unique_ptr<Memory> CudaBackend::allocate(std::int64_t bytes) {
  return std::make_unique<DeviceMemory>(device_, bytes);
}

std::unique_ptr<Readback> CudaBackend::allocate_readback(std::int64_t bytes) {
  return device_->allocate_readback(bytes);
}

Kernel CudaBackend::copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) {
  check(!guard || guard.type.dtype == DType::kF32, ErrorKind::kBackendMissing,
        "[copy] guard: expected f32, got {}", name_of(guard.type.dtype));
  return PlacedKernel{bind_copy(dst, src, guard), accesses_of({{src, guard}, {dst}}, 0)};
}

void CudaBackend::run(std::span<const Kernel> kernels) {
  const OnDevice here(*device_);
  for (const Kernel& kernel : kernels) kernel();
  device_->synchronize();
}

double CudaBackend::seconds(const std::function<void()>& body) { return device_->seconds(body); }

Kernel CudaBackend::record(std::span<const Kernel> kernels) {
  const OnDevice here(*device_);
  return [step = std::make_shared<Step>(device_, joined(kernels))] { step->run(); };
}

}  // namespace keel::cuda

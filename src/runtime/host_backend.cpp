#include "src/runtime/host_backend.h"

#include <cmath>
#include <cstring>

#include "src/core/dtype_set.h"
#include "src/runtime/growing_memory.h"

namespace keel {
namespace {

class HostMemory : public Memory {
 public:
  explicit HostMemory(std::int64_t bytes) : bytes_(bytes) {}
  std::byte* address() const override { return bytes_.data(); }
  std::int64_t bytes() const override { return bytes_.size(); }
  void upload(std::int64_t offset, const void* src, std::int64_t bytes) override {
    if (bytes == 0) return;  // there may be no address
    std::memcpy(bytes_.data() + offset, src, std::size_t(bytes));
  }
  void download(std::int64_t offset, void* dst, std::int64_t bytes) const override {
    if (bytes == 0) return;
    std::memcpy(dst, bytes_.data() + offset, std::size_t(bytes));
  }

 private:
  AlignedBytes bytes_;
};

// The host itself runs the kernels: a copy is complete when it returns.
class HostReadback : public Readback {
 public:
  explicit HostReadback(std::int64_t bytes) : bytes_(bytes) {}
  void receive(std::int64_t offset, const void* src, std::int64_t bytes) override {
    std::memcpy(bytes_.data() + offset, src, std::size_t(bytes));
  }
  bool is_complete() const override { return true; }
  const std::byte* wait() override { return bytes_.data(); }

 private:
  AlignedBytes bytes_;
};

bool is_finite(const TensorRef& scalar) {
  return scalar.type.dtype == DType::kF64 ? std::isfinite(*scalar.as<double>())
                                          : std::isfinite(*scalar.as<float>());
}

}  // namespace

std::unique_ptr<Memory> HostBackend::allocate(std::int64_t bytes) {
  return std::make_unique<HostMemory>(bytes);
}

std::unique_ptr<Memory> HostBackend::allocate_growing(std::int64_t bytes) {
  std::unique_ptr<Memory> memory = allocate_growing_memory(bytes);
  return memory ? std::move(memory) : allocate(bytes);
}

std::unique_ptr<Readback> HostBackend::allocate_readback(std::int64_t bytes) {
  return std::make_unique<HostReadback>(bytes);
}

Kernel HostBackend::copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard) {
  check(!guard || (DType::kF32 | DType::kF64).contains(guard.type.dtype),
        ErrorKind::kBackendMissing, "[copy] guard: expected f32 or f64, got {}",
        name_of(guard.type.dtype));
  const auto bytes = std::size_t(dst.type.bytes());
  return [=] {
    if (!guard || is_finite(guard)) std::memcpy(dst.data, src.data, bytes);
  };
}

void HostBackend::run(std::span<const Kernel> kernels) {
  for (const Kernel& kernel : kernels) kernel();
}

}  // namespace keel

// libkeel_norm_cuda.so: plans on a GPU.
#include "backends/cuda/norm_backend.h"
#include "backends/cuda/runtime.h"
#include "plugin/c/cuda_library.h"
#include "plugin/c/version.h"

namespace keel::plugin {
namespace {

// Kernels read and write four elements at a time.
std::size_t alignment(DType dtype) {
  const bool is_float = dtype == DType::kF32 || dtype == DType::kBF16;
  return (is_float ? 4 : 1) * std::size_t(size_of(dtype));
}

Backend& cuda_backend() {
  static cuda::NormBackend backend;
  return backend;
}

class CudaPlan : public Plan {
 public:
  explicit CudaPlan(const Request& request)
      : Plan(request, cuda_backend()), device_(request.device) {}

  void run(const Arrays& arrays, const keel_executor* executor) const override {
    const Binding binding = bound(arrays);
    strided(arrays, binding);  // refuses all that is not contiguous
    void* const stream = executor == nullptr ? nullptr : executor->stream;
    const cuda::OnStream here(device_, static_cast<cuda::Stream>(stream));
    expect_on_device(binding);
    start(binding);
  }

 private:
  // A kernel that is given an address of the host ends all work of the process on that GPU.
  void expect_on_device(const Binding& binding) const {
    for (std::size_t i = 0; i < binding.inputs.size(); ++i) {
      expect_on_device(binding.inputs[i], [&] { return input_text(i); });
    }
    for (std::size_t j = 0; j < binding.outputs.size(); ++j) {
      expect_on_device(binding.outputs[j], [&] { return output_text(j); });
    }
    if (workspace() > 0) expect_address(binding.workspace, [&] { return workspace_text(); });
  }
  template <class What>
  void expect_on_device(const TensorRef& array, const What& what) const {
    if (!array) return;
    const std::size_t bytes = alignment(array.type.dtype);
    const auto place = reinterpret_cast<std::uintptr_t>(array.data);
    check(place % bytes == 0, ErrorKind::kUsage,
          "{}: expected an address that is a multiple of {} bytes", what(), bytes);
    expect_address(array.data, what);
  }
  template <class What>
  void expect_address(const void* address, const What& what) const {
    const std::string refusal = cuda::address_refusal(device_, address);
    check(refusal.empty(), ErrorKind::kUsage, "{}: expected an address of device {}, got {}",
          what(), device_, refusal);
  }

  int device_;
};

}  // namespace
}  // namespace keel::plugin

const char* keel_norm_cuda_version() { return keel::plugin::kVersion.data(); }

keel::plugin::Plan* keel_norm_cuda_prepare(const keel::plugin::Request& request) {
  keel::cuda::require_device(request.device);
  return new keel::plugin::CudaPlan(request);
}

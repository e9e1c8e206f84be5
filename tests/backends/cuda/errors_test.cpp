// A call that fails is said by its own error, and by no launch that comes after it. Needs no GPU:
// without one, every call fails.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <functional>

#include "backends/cuda/backend.h"
#include "backends/cuda/runtime.h"

namespace {
int times_cleared = 0;
}

// CUDA's own, which forgets the last error, counted: without a driver that error cannot be read.
extern "C" cudaError_t CUDARTAPI cudaGetLastError() {
  ++times_cleared;
  static const auto original =
      reinterpret_cast<cudaError_t (*)()>(dlsym(RTLD_NEXT, "cudaGetLastError"));
  return original();
}

namespace keel::cuda {
namespace {

bool has_gpu() {
  int devices = 0;
  return cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
}

// The call is refused, and what CUDA holds of it is forgotten.
void check_forgotten(const std::function<void()>& call) {
  const int before = times_cleared;
  bool is_refused = false;
  try {
    call();
  } catch (const Error&) {
    is_refused = true;
  }
  CHECK(is_refused);
  CHECK(times_cleared > before);
  if (has_gpu()) CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("cuda errors: what fails leaves no complaint to the next launch") {
  check_forgotten([] { KEEL_CUDA_CALL(cudaSetDevice(1 << 20)); });
  check_forgotten([] { std::make_shared<Device>(Options{})->allocate(std::int64_t{1} << 60); });
  check_forgotten(
      [] { std::make_shared<Device>(Options{})->allocate_readback(std::int64_t{1} << 60); });
}

TEST_CASE("cuda errors: a machine without a GPU is refused") {
  if (has_gpu()) {
    CHECK_NOTHROW(require_device());
  } else {
    check_forgotten([] { CudaBackend(Options{}); });
  }
}

}  // namespace
}  // namespace keel::cuda

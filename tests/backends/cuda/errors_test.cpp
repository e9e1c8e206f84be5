// A call that fails is said by its own error, and by no launch that comes after it. Needs no GPU:
// without one, every call fails.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>

#include "backends/cuda/backend.h"
#include "backends/cuda/runtime.h"

namespace {
int times_cleared = 0;
// The compute capability of the only device that there seems to be; 0: those that there are.
int pretended_major = 0, pretended_minor = 0;
// The newest CUDA that the driver seems to know; 0: that of the driver.
int pretended_driver = 0;

// CUDA's own function.
template <class F>
F* original(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}
}  // namespace

// CUDA's own, which forgets the last error, counted: without a driver that error cannot be read.
extern "C" cudaError_t CUDARTAPI cudaGetLastError() {
  ++times_cleared;
  static const auto call = original<cudaError_t()>("cudaGetLastError");
  return call();
}

extern "C" cudaError_t CUDARTAPI cudaGetDeviceCount(int* count) {
  static const auto call = original<cudaError_t(int*)>("cudaGetDeviceCount");
  if (pretended_major == 0 && pretended_driver == 0) return call(count);
  if (pretended_major == 0) return cudaErrorInsufficientDriver;
  *count = 1;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaDriverGetVersion(int* version) {
  static const auto call = original<cudaError_t(int*)>("cudaDriverGetVersion");
  if (pretended_driver == 0) return call(version);
  *version = pretended_driver;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute,
                                                        int device) {
  static const auto call =
      original<cudaError_t(int*, cudaDeviceAttr, int)>("cudaDeviceGetAttribute");
  if (pretended_major == 0) return call(value, attribute, device);
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? pretended_major : pretended_minor;
  return cudaSuccess;
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
    CHECK(device_count() > 0);
  } else {
    check_forgotten([] { CudaBackend(Options{}); });
  }
}

TEST_CASE("cuda errors: a driver that is too old is refused, with its version") {
  pretended_driver = 11040;
  std::string said;
  try {
    device_count();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBackendMissing);
    said = error.what();
  }
  pretended_driver = 0;
  CHECK(said.starts_with("backend cuda: no GPU can be used: the NVIDIA driver is for CUDA 11.4"));
}

// Why a device of that compute capability cannot be used; empty if it can.
std::string refusal_of(int major, int minor) {
  pretended_major = major, pretended_minor = minor, pretended_driver = CUDART_VERSION;
  std::string text;
  try {
    require_device(0);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBackendMissing);
    text = error.what();
  }
  CHECK_THROWS_AS(require_device(1), Error);
  if (!text.empty()) CHECK_THROWS_WITH_AS(CudaBackend(Options{}), text.c_str(), Error);
  pretended_major = pretended_driver = 0;
  return text;
}

TEST_CASE("cuda errors: a GPU that is too old is refused, with what was expected") {
  for (const auto& [major, minor] : {std::pair{8, 0}, {8, 9}, {9, 0}, {12, 1}}) {
    CHECK(refusal_of(major, minor).empty());
  }
  for (const auto& [major, minor] : {std::pair{7, 5}, {6, 1}, {5, 0}}) {
    CHECK(
        refusal_of(major, minor) ==
        fmt::format("device 0: expected compute capability 8.0 or newer, got {}.{}", major, minor));
  }
}

}  // namespace
}  // namespace keel::cuda

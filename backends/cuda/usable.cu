// Which devices can be used, what they are, and which memory they reach.
#include "backends/cuda/refusals.h"
#include "backends/cuda/runtime.h"
#include "src/core/error.h"

namespace keel::cuda {
namespace {

__global__ void nothing() {}

// The newest CUDA that the driver knows; 0 without a driver.
int driver_version() {
  int version = 0;
  succeeded(cudaDriverGetVersion(&version));
  return version;
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  KEEL_CUDA_CALL(cudaDeviceGetAttribute(&value, which, device));
  return value;
}

}  // namespace

int device_count() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (succeeded(status) && devices > 0) return devices;
  const int driver = driver_version();
  std::string why = cudaGetErrorString(status);
  if (status == cudaSuccess || status == cudaErrorNoDevice) why = none_counted(driver);
  if (status == cudaErrorInsufficientDriver) why = driver_refusal(driver, CUDART_VERSION);
  fail(ErrorKind::kBackendMissing, "backend cuda: no GPU can be used: {}", why);
}

void require_device(int number) {
  const int devices = device_count();
  check(number >= 0 && number < devices, ErrorKind::kBackendMissing,
        "device: expected one of the {} that CUDA counts, from 0 on, got {}", devices, number);
  // Otherwise the first kernel would fail, without saying why.
  const Capability gpu{attribute(cudaDevAttrComputeCapabilityMajor, number),
                       attribute(cudaDevAttrComputeCapabilityMinor, number)};
  const std::string refusal = capability_refusal(gpu, driver_version(), CUDART_VERSION);
  check(refusal.empty(), ErrorKind::kBackendMissing, "device {}: {}", number, refusal);
}

void expect_code(int device) {
  cudaFuncAttributes found{};
  const cudaError_t status = cudaFuncGetAttributes(&found, nothing);
  const std::string why = cudaGetErrorString(status);
  check(succeeded(status), ErrorKind::kBackendMissing,
        "device {}: no kernel of this build can be loaded: {} (compute capability {}.{}, a driver "
        "for CUDA {}, a build by CUDA {})",
        device, why, attribute(cudaDevAttrComputeCapabilityMajor, device),
        attribute(cudaDevAttrComputeCapabilityMinor, device), version_text(driver_version()),
        version_text(CUDART_VERSION));
}

bool has_pools(int device) { return attribute(cudaDevAttrMemoryPoolsSupported, device) != 0; }

std::string address_refusal(int device, const void* address) {
  cudaPointerAttributes found{};
  KEEL_CUDA_CALL(cudaPointerGetAttributes(&found, address));
  if (found.type == cudaMemoryTypeDevice && found.device != device) {
    return fmt::format("one of device {}", found.device);
  }
  if (found.type != cudaMemoryTypeUnregistered) return "";
  // Some devices read all of the host's memory.
  const bool reads_host = attribute(cudaDevAttrPageableMemoryAccess, device) != 0;
  return reads_host ? "" : "one that CUDA does not know";
}

std::string Device::text() const {
  cudaDeviceProp properties{};
  int runtime = 0;
  KEEL_CUDA_CALL(cudaGetDeviceProperties(&properties, number()));
  KEEL_CUDA_CALL(cudaRuntimeGetVersion(&runtime));
  return fmt::format(
      "{}, {} multiprocessors, compute capability {}.{}, CUDA {}, driver for CUDA {}",
      properties.name, properties.multiProcessorCount, properties.major, properties.minor,
      version_text(runtime), version_text(driver_version()));
}

}  // namespace keel::cuda

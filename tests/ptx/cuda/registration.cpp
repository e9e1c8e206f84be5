// The functions that the code of nvcc calls by itself: before main(), and for kernel<<<...>>>(...).
#include <cstring>

#include "tests/ptx/cuda/device.h"
#include "tests/ptx/cuda/streams.h"
#include "tests/ptx/fault.h"

namespace keel::ptx {
namespace {

struct Configuration {
  dim3 grid, block;
  std::size_t shared = 0;
  void* stream = nullptr;
};

Configuration& configuration() {
  thread_local Configuration configuration;
  return configuration;
}

// The parameters one after the other, as the kernel declares them.
std::vector<std::byte> packed(const Code& code, void** arguments) {
  std::vector<std::byte> all(static_cast<std::size_t>(code.parameter_bytes));
  for (std::size_t i = 0; i < code.parameters.size(); ++i) {
    const Placed& parameter = code.parameters[i];
    std::memcpy(all.data() + parameter.first, arguments[i], std::size_t(parameter.bytes));
  }
  return all;
}

}  // namespace
}  // namespace keel::ptx

using keel::ptx::answer;
using keel::ptx::configuration;
using keel::ptx::device;

KEEL_PTX_API void** __cudaRegisterFatBinary(void* wrapper) {
  return device().kernels.add_binary(wrapper);
}
KEEL_PTX_API void __cudaRegisterFatBinaryEnd(void**) {}
KEEL_PTX_API void __cudaUnregisterFatBinary(void**) {}
KEEL_PTX_API void __cudaRegisterFunction(void** binary, const char* host, char*, const char* name,
                                         int, uint3*, uint3*, dim3*, dim3*, int*) {
  device().kernels.add_function(binary, host, name);
}

KEEL_PTX_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                                  cudaStream_t stream) {
  configuration() = {grid, block, shared, stream};
  return 0;
}
KEEL_PTX_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared,
                                                    void* stream) {
  *grid = configuration().grid;
  *block = configuration().block;
  *shared = configuration().shared;
  *static_cast<void**>(stream) = configuration().stream;
  return cudaSuccess;
}

// The handle of a kernel is the address of its host function.
KEEL_PTX_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
KEEL_PTX_API cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                                            void** arguments, std::size_t shared,
                                            cudaStream_t stream) {
  return answer([&] {
    keel::ptx::begin_work(stream);
    if (shared) keel::ptx::fail("shared memory of a size that the launch gives");
    const keel::ptx::Code& code = device().kernels.code(kernel);
    device().launch(code, grid, block, keel::ptx::packed(code, arguments));
    return cudaSuccess;
  });
}

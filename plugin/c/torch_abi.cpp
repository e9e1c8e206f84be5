#include "plugin/c/torch_abi.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace keel::plugin::torch {
namespace {

Functions found;

#define KEEL_TORCH_DECLARE(name, arguments) using name = std::int32_t(*) arguments;
KEEL_TORCH_CUDA_CALLS(KEEL_TORCH_DECLARE)
#undef KEEL_TORCH_DECLARE

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

const Functions& functions() { return found; }

const char* find_functions() {
  void* library = dlopen("libtorch_cpu.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return "libtorch_cpu.so";
#define KEEL_TORCH_FIND(name, arguments) \
  if (!find(library, #name, found.name)) return #name;
  KEEL_TORCH_CALLS(KEEL_TORCH_FIND)
#undef KEEL_TORCH_FIND
#define KEEL_TORCH_FIND(name) \
  if (!find(library, #name, found.name)) return #name;
  KEEL_TORCH_NUMBERS(KEEL_TORCH_FIND)
#undef KEEL_TORCH_FIND
  return nullptr;
}

void* current_stream(std::int32_t device) {
  static const auto get = [] {
    void* library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
    aoti_torch_get_current_cuda_stream function = nullptr;
    if (library == nullptr || !find(library, "aoti_torch_get_current_cuda_stream", function)) {
      throw std::runtime_error("keel_norms: this PyTorch has no libtorch_cuda.so with streams");
    }
    return function;
  }();
  void* stream = nullptr;
  expect(get(device, &stream), "aoti_torch_get_current_cuda_stream");
  return stream;
}

void expect(std::int32_t status, const char* name) {
  if (status == 0) return;
  throw std::runtime_error(std::string("keel_norms: PyTorch's ") + name + " failed");
}

}  // namespace keel::plugin::torch

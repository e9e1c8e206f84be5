#include "plugin/c/torch_abi.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace keel::plugin::torch {
namespace {

Functions found;

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

void expect(std::int32_t status, const char* name) {
  if (status == 0) return;
  throw std::runtime_error(std::string("keel_norms: PyTorch's ") + name + " failed");
}

}  // namespace keel::plugin::torch

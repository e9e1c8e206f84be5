// Fails to compile where plugin/c/torch_abi.h declares a function of PyTorch's other than PyTorch
// does. Addresses of objects count as addresses: each side has names of its own for the objects.
#define USE_CUDA  // shows what PyTorch has for GPUs
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/c/shim.h>

#include <type_traits>

#include "plugin/c/torch_abi.h"

namespace {

// A type with every class that an address points to replaced by one.
template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<T*> {
  using type = std::conditional_t<std::is_class_v<T>, void*, typename Plain<T>::type*>;
};
template <class Result, class... Arguments>
struct Plain<Result(Arguments...)> {
  using type = typename Plain<Result>::type(typename Plain<Arguments>::type...);
};

using keel::plugin::torch::Functions;

#define KEEL_SAME(name)                                                         \
  static_assert(std::is_same_v<typename Plain<decltype(Functions::name)>::type, \
                               typename Plain<decltype(&::name)>::type>,        \
                #name " is declared otherwise");
#define KEEL_SAME_CALL(name, arguments) KEEL_SAME(name)
KEEL_TORCH_CALLS(KEEL_SAME_CALL)
KEEL_TORCH_NUMBERS(KEEL_SAME)
#define KEEL_SAME_CUDA_CALL(name, arguments)                                    \
  static_assert(std::is_same_v<typename Plain<std::int32_t(*) arguments>::type, \
                               typename Plain<decltype(&::name)>::type>,        \
                #name " is declared otherwise");
KEEL_TORCH_CUDA_CALLS(KEEL_SAME_CUDA_CALL)

}  // namespace

int main() { return 0; }

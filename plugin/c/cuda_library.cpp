#include "plugin/c/cuda_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "plugin/c/sums.h"
#include "plugin/c/version.h"

namespace keel::plugin {
namespace {

template <class Function>
Function* find(void* library, const char* path, const char* name) {
  void* found = dlsym(library, name);
  check(found != nullptr, ErrorKind::kBackendMissing, "CUDA: {}: it lacks {}", path, name);
  return reinterpret_cast<Function*>(found);
}

// Loads the library, which stays.
decltype(&keel_norm_cuda_prepare) load() {
  const char* named = std::getenv("KEEL_NORM_CUDA_LIBRARY");
  const char* path = named != nullptr ? named : "libkeel_norm_cuda.so";
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, ErrorKind::kBackendMissing,
        "CUDA: keel's kernels for GPUs cannot be loaded: {}", dlerror());
  using Version = decltype(keel_norm_cuda_version);
  const std::string_view version = find<Version>(library, path, "keel_norm_cuda_version")();
  check(version == kVersion, ErrorKind::kBackendMissing, "CUDA: {}: expected version {}, got {}",
        path, kVersion, version);
  return find<decltype(keel_norm_cuda_prepare)>(library, path, "keel_norm_cuda_prepare");
}

}  // namespace

std::unique_ptr<Plan> plan_on_cuda(const Request& request) {
  const SumOp* sum = find_sum_op(request.op);
  check(sum == nullptr, ErrorKind::kBackendMissing,
        "[{}] expected the CPU: on a GPU, run the sum and {} one after the other", request.op,
        sum == nullptr ? "" : sum->norm.name);
  static const auto prepare = load();  // where it throws, the next call tries again
  return std::unique_ptr<Plan>(prepare(request));
}

}  // namespace keel::plugin

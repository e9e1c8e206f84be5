#include "backends/nccl/nccl_library.h"

#include <dlfcn.h>

#include "src/core/error.h"

namespace keel::nccl {
namespace {

template <class F>
void find(F*& function, void* library, const std::string& path, const char* name) {
  void* found = dlsym(library, name);
  check(found != nullptr, ErrorKind::kBackendMissing, "{}: it lacks {}", path, name);
  function = reinterpret_cast<F*>(found);
}

// The library itself and what it needs come first: a fake one of tests brings its own.
template <class F>
void find_of_cuda(F*& function, void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) found = dlsym(RTLD_DEFAULT, name);
  check(found != nullptr, ErrorKind::kBackendMissing,
        "NCCL carries what lies on a GPU, and this process has no {}: expected a keel with CUDA",
        name);
  function = reinterpret_cast<F*>(found);
}

}  // namespace

Library::Library(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, ErrorKind::kBackendMissing, "NCCL cannot be loaded: {}", dlerror());
  find(nccl_.get_version, library, path, "ncclGetVersion");
  find(nccl_.get_unique_id, library, path, "ncclGetUniqueId");
  find(nccl_.comm_init_rank, library, path, "ncclCommInitRank");
  find(nccl_.comm_destroy, library, path, "ncclCommDestroy");
  find(nccl_.comm_get_async_error, library, path, "ncclCommGetAsyncError");
  find(nccl_.group_start, library, path, "ncclGroupStart");
  find(nccl_.group_end, library, path, "ncclGroupEnd");
  find(nccl_.send, library, path, "ncclSend");
  find(nccl_.recv, library, path, "ncclRecv");
  find(nccl_.all_gather, library, path, "ncclAllGather");
  find(nccl_.all_reduce, library, path, "ncclAllReduce");
  find(nccl_.get_error_string, library, path, "ncclGetErrorString");
  find_of_cuda(cuda_.set_device, library, "cudaSetDevice");
  find_of_cuda(cuda_.malloc, library, "cudaMalloc");
  find_of_cuda(cuda_.free, library, "cudaFree");
  find_of_cuda(cuda_.memcpy_async, library, "cudaMemcpyAsync");
  find_of_cuda(cuda_.stream_create, library, "cudaStreamCreateWithFlags");
  find_of_cuda(cuda_.stream_synchronize, library, "cudaStreamSynchronize");
  find_of_cuda(cuda_.stream_destroy, library, "cudaStreamDestroy");
  find_of_cuda(cuda_.get_error_string, library, "cudaGetErrorString");
}

// As NCCL counts since 2.9: 22809 is 2.28.9.
std::string Library::version() const {
  int version = 0;
  expect_nccl(nccl_.get_version(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void Library::expect_nccl(int result, const char* function) const {
  check(result == kSuccess, ErrorKind::kIo, "{}: {}", function, nccl_.get_error_string(result));
}

void Library::expect_cuda(int result, const char* function) const {
  check(result == kSuccess, ErrorKind::kIo, "{}: {}", function, cuda_.get_error_string(result));
}

}  // namespace keel::nccl

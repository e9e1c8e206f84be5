// The functions of NCCL and of CUDA's runtime that ranks use, looked up in libraries at run time:
// neither is needed to build keel. They are declared here as NCCL 2.28's nccl.h and CUDA 13's
// cuda_runtime_api.h have them, with int for their enumerations.
#pragma once

#include <cstddef>
#include <string>

namespace keel::nccl {

struct Comm;    // ncclComm
struct Stream;  // CUstream_st

// The identifier that the ranks of a communicator have in common; rank 0 makes it.
struct UniqueId {
  char bytes[128];
};

// They are values of ncclResult_t, ncclDataType_t, ncclRedOp_t and cudaMemcpyKind, and a flag of
// streams.
inline constexpr int kSuccess = 0;
inline constexpr int kBytes = 0, kFloat = 7, kDouble = 8;
inline constexpr int kSum = 0;
inline constexpr int kToDevice = 1, kToHost = 2;
inline constexpr unsigned kNonBlocking = 1;

struct NcclFunctions {
  int (*get_version)(int* version);
  int (*get_unique_id)(UniqueId* id);
  int (*comm_init_rank)(Comm** comm, int ranks, UniqueId id, int rank);
  int (*comm_destroy)(Comm* comm);
  int (*comm_get_async_error)(Comm* comm, int* error);
  int (*group_start)();
  int (*group_end)();
  int (*send)(const void* from, std::size_t count, int type, int peer, Comm*, Stream*);
  int (*recv)(void* to, std::size_t count, int type, int peer, Comm*, Stream*);
  // Each rank gives `count` elements; `to` takes those of all, in the order of ranks.
  int (*all_gather)(const void* from, void* to, std::size_t count, int type, Comm*, Stream*);
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int op, Comm*,
                    Stream*);
  const char* (*get_error_string)(int result);
};

struct CudaFunctions {
  int (*set_device)(int number);  // of this thread
  int (*malloc)(void** memory, std::size_t bytes);
  int (*free)(void* memory);
  int (*memcpy_async)(void* to, const void* from, std::size_t bytes, int kind, Stream*);
  int (*stream_create)(Stream** stream, unsigned flags);
  int (*stream_synchronize)(Stream* stream);
  int (*stream_destroy)(Stream* stream);
  const char* (*get_error_string)(int error);
};

class Library {
 public:
  // Loads `path`, "libnccl.so.2" say, and never closes it. The functions of CUDA are its own, if it
  // has them, or those that this process uses already. Throws Error{kBackendMissing} that names
  // what is not there.
  explicit Library(const std::string& path);

  const NcclFunctions& nccl() const { return nccl_; }
  const CudaFunctions& cuda() const { return cuda_; }
  // "NCCL 2.28.9"
  std::string version() const;
  // Throw Error{kIo} with the function and what the library says, unless a call has succeeded.
  void expect_nccl(int result, const char* function) const;
  void expect_cuda(int result, const char* function) const;

 private:
  NcclFunctions nccl_{};
  CudaFunctions cuda_{};
};

}  // namespace keel::nccl

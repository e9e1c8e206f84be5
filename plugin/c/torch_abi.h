// The functions of LibTorch's stable C interface that the kernels for PyTorch call. They are looked
// up in the libtorch_cpu.so that the process has loaded, so that nothing of PyTorch is needed to
// build, and one file serves PyTorch 2.10 and newer. torch_abi_check.cpp holds the types below to
// PyTorch's own headers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::plugin::torch {

struct TensorObject;
struct LibraryObject;
struct ListObject;
struct TextObject;
using Handle = TensorObject*;

// A value on the dispatcher's stack: a number, or the address of what is too large for it. An
// optional value is the address of one on the heap, 0 where it is absent.
using Value = std::uint64_t;
using BoxedKernel = void (*)(Value* stack, std::uint64_t inputs, std::uint64_t outputs);
using RangeBody = void (*)(std::int64_t first, std::int64_t last, void* argument);

// The version whose conventions the kernels keep: 2.10.
inline constexpr std::uint64_t kVersion = (std::uint64_t{2} << 56) | (std::uint64_t{10} << 48);

// Functions by name with their arguments. They return 0, or another number on failure.
#define KEEL_TORCH_CALLS(X)                                                            \
  X(aoti_torch_library_init_impl,                                                      \
    (const char*, const char*, const char*, std::uint32_t, LibraryObject**))           \
  X(torch_library_impl, (LibraryObject*, const char*, BoxedKernel, std::uint64_t))     \
  X(aoti_torch_delete_tensor_object, (Handle))                                         \
  X(aoti_torch_get_dim, (Handle, std::int64_t*))                                       \
  X(aoti_torch_get_sizes, (Handle, std::int64_t**))                                    \
  X(aoti_torch_get_strides, (Handle, std::int64_t**))                                  \
  X(aoti_torch_get_dtype, (Handle, std::int32_t*))                                     \
  X(aoti_torch_get_device_type, (Handle, std::int32_t*))                               \
  X(aoti_torch_get_device_index, (Handle, std::int32_t*))                              \
  X(aoti_torch_is_contiguous, (Handle, bool*))                                         \
  X(aoti_torch_empty_strided, (std::int64_t, const std::int64_t*, const std::int64_t*, \
                               std::int32_t, std::int32_t, std::int32_t, Handle*))     \
  X(aoti_torch_copy_, (Handle, Handle, std::int32_t))                                  \
  X(torch_get_const_data_ptr, (Handle, const void**))                                  \
  X(torch_get_mutable_data_ptr, (Handle, void**))                                      \
  X(torch_list_size, (ListObject*, std::size_t*))                                      \
  X(torch_list_get_item, (ListObject*, std::size_t, Value*))                           \
  X(torch_delete_list, (ListObject*))                                                  \
  X(torch_string_length, (TextObject*, std::size_t*))                                  \
  X(torch_string_c_str, (TextObject*, const char**))                                   \
  X(torch_delete_string, (TextObject*))                                                \
  X(torch_get_num_threads, (std::uint32_t*))                                           \
  X(torch_parallel_for, (std::int64_t, std::int64_t, std::int64_t, RangeBody, void*))

// Functions without arguments that return a number of PyTorch's.
#define KEEL_TORCH_NUMBERS(X)   \
  X(aoti_torch_dtype_float16)   \
  X(aoti_torch_dtype_bfloat16)  \
  X(aoti_torch_dtype_float32)   \
  X(aoti_torch_dtype_float64)   \
  X(aoti_torch_dtype_int32)     \
  X(aoti_torch_dtype_uint8)     \
  X(aoti_torch_device_type_cpu) \
  X(aoti_torch_device_type_cuda)

// The functions of libtorch_cuda.so, where PyTorch has CUDA.
#define KEEL_TORCH_CUDA_CALLS(X) \
  X(aoti_torch_get_current_cuda_stream, (std::int32_t device, void** stream))

struct Functions {
#define KEEL_TORCH_DECLARE(name, arguments) std::int32_t(*name) arguments = nullptr;
  KEEL_TORCH_CALLS(KEEL_TORCH_DECLARE)
#undef KEEL_TORCH_DECLARE
#define KEEL_TORCH_DECLARE(name) std::int32_t (*name)() = nullptr;
  KEEL_TORCH_NUMBERS(KEEL_TORCH_DECLARE)
#undef KEEL_TORCH_DECLARE
};

// All of them; find_functions() must have succeeded.
const Functions& functions();

// Returns the name of the first function that the loaded PyTorch lacks, "libtorch_cpu.so" where
// none is loaded, and nullptr when all were found.
const char* find_functions();

// This thread's current stream of a GPU in PyTorch, a cudaStream_t. Throws std::runtime_error where
// this PyTorch has no CUDA.
void* current_stream(std::int32_t device);

// Throws std::runtime_error that names the function of PyTorch that failed.
void expect(std::int32_t status, const char* name);

}  // namespace keel::plugin::torch

// Calls a function of PyTorch and throws where it fails.
#define KEEL_TORCH(name, ...) \
  ::keel::plugin::torch::expect(::keel::plugin::torch::functions().name(__VA_ARGS__), #name)

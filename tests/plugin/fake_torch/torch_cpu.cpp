// The functions of libtorch_cpu.so: tensors, the dispatcher, threads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "tests/plugin/emulated_device.h"
#include "tests/plugin/fake_torch/fake_torch.h"

namespace keel::plugin::torch {

struct TensorObject {
  std::int32_t device, index, dtype;
  std::vector<std::int64_t> sizes;
  char* data;
  void* memory;
};
struct LibraryObject {
  std::string devices;
};
struct TextObject {
  std::string text;
};

}  // namespace keel::plugin::torch

using namespace keel::plugin::torch;  // NOLINT: the functions are outside of namespaces
using keel::test::FakeForm;
using keel::test::kFakeCpu;
using keel::test::kFakeCuda;
using keel::test::kFakeDouble;
using keel::test::kFakeFloat;

namespace {

std::map<std::pair<std::string, std::string>, BoxedKernel> kernels;
std::atomic<std::int64_t> living = 0, copies = 0;

std::int64_t width_of(std::int32_t dtype) { return dtype == kFakeDouble ? 8 : dtype == 0 ? 1 : 4; }

std::int64_t bytes_of(const std::vector<std::int64_t>& sizes, std::int32_t dtype) {
  std::int64_t bytes = width_of(dtype);
  for (const std::int64_t size : sizes) bytes *= size;
  return bytes;
}

Handle made(TensorObject tensor, std::int64_t first) {
  const std::int64_t before = first * width_of(tensor.dtype);
  const std::int64_t bytes = before + bytes_of(tensor.sizes, tensor.dtype);
  if (tensor.device == kFakeCuda) {
    tensor.memory = keel_emulated_allocate(tensor.index, bytes);
  } else {
    tensor.memory = std::aligned_alloc(64, std::size_t(bytes / 64 + 1) * 64);
    std::memset(tensor.memory, 0xff, std::size_t(bytes));
  }
  tensor.data = static_cast<char*>(tensor.memory) + before;
  ++living;
  return new TensorObject(std::move(tensor));
}

}  // namespace

Handle fake_torch_tensor(const FakeForm* form) {
  return made({form->device, form->index, form->dtype, {form->rows, form->columns}, {}, {}},
              form->first);
}
Value fake_torch_text(const char* text) { return reinterpret_cast<Value>(new TextObject{text}); }
BoxedKernel fake_torch_kernel(const char* devices, const char* name) {
  const auto found = kernels.find({devices, name});
  return found == kernels.end() ? nullptr : found->second;
}
std::int64_t fake_torch_living() { return living; }
std::int64_t fake_torch_copies() { return copies; }

extern "C" {

KEEL_API std::int32_t aoti_torch_library_init_impl(const char*, const char* devices, const char*,
                                                   std::uint32_t, LibraryObject** library) {
  *library = new LibraryObject{devices};
  return 0;
}
KEEL_API std::int32_t torch_library_impl(LibraryObject* library, const char* name,
                                         BoxedKernel kernel, std::uint64_t) {
  kernels[{library->devices, name}] = kernel;
  return 0;
}

KEEL_API std::int32_t aoti_torch_delete_tensor_object(Handle tensor) {
  tensor->device == kFakeCuda ? keel_emulated_release(tensor->memory) : std::free(tensor->memory);
  delete tensor;
  --living;
  return 0;
}
KEEL_API std::int32_t aoti_torch_get_dim(Handle tensor, std::int64_t* rank) {
  *rank = std::int64_t(tensor->sizes.size());
  return 0;
}
KEEL_API std::int32_t aoti_torch_get_sizes(Handle tensor, std::int64_t** sizes) {
  *sizes = tensor->sizes.data();
  return 0;
}
// All tensors are contiguous.
KEEL_API std::int32_t aoti_torch_get_strides(Handle, std::int64_t**) { return 1; }
KEEL_API std::int32_t aoti_torch_get_dtype(Handle tensor, std::int32_t* dtype) {
  *dtype = tensor->dtype;
  return 0;
}
KEEL_API std::int32_t aoti_torch_get_device_type(Handle tensor, std::int32_t* type) {
  *type = tensor->device;
  return 0;
}
KEEL_API std::int32_t aoti_torch_get_device_index(Handle tensor, std::int32_t* index) {
  *index = tensor->index;
  return 0;
}
KEEL_API std::int32_t aoti_torch_is_contiguous(Handle, bool* is_contiguous) {
  *is_contiguous = true;
  return 0;
}
KEEL_API std::int32_t aoti_torch_empty_strided(std::int64_t rank, const std::int64_t* sizes,
                                               const std::int64_t*, std::int32_t dtype,
                                               std::int32_t device, std::int32_t index,
                                               Handle* tensor) {
  *tensor = made({device, index, dtype, {sizes, sizes + rank}, {}, {}}, 0);
  return 0;
}
KEEL_API std::int32_t aoti_torch_copy_(Handle to, Handle from, std::int32_t) {
  ++copies;
  std::memcpy(to->data, from->data, std::size_t(bytes_of(from->sizes, from->dtype)));
  return 0;
}
KEEL_API std::int32_t torch_get_const_data_ptr(Handle tensor, const void** data) {
  *data = tensor->data;
  return 0;
}
KEEL_API std::int32_t torch_get_mutable_data_ptr(Handle tensor, void** data) {
  *data = tensor->data;
  return 0;
}

// Lists are arguments only of commit(), which runs on CPUs.
KEEL_API std::int32_t torch_list_size(ListObject*, std::size_t*) { return 1; }
KEEL_API std::int32_t torch_list_get_item(ListObject*, std::size_t, Value*) { return 1; }
KEEL_API std::int32_t torch_delete_list(ListObject*) { return 1; }

KEEL_API std::int32_t torch_string_length(TextObject* text, std::size_t* length) {
  *length = text->text.size();
  return 0;
}
KEEL_API std::int32_t torch_string_c_str(TextObject* text, const char** data) {
  *data = text->text.c_str();
  return 0;
}
KEEL_API std::int32_t torch_delete_string(TextObject* text) {
  delete text;
  return 0;
}

KEEL_API std::int32_t torch_get_num_threads(std::uint32_t* threads) {
  *threads = 1;
  return 0;
}
KEEL_API std::int32_t torch_parallel_for(std::int64_t begin, std::int64_t end, std::int64_t,
                                         RangeBody body, void* argument) {
  body(begin, end, argument);
  return 0;
}

KEEL_API std::int32_t aoti_torch_dtype_uint8() { return 0; }
KEEL_API std::int32_t aoti_torch_dtype_int32() { return 3; }
KEEL_API std::int32_t aoti_torch_dtype_float16() { return 5; }
KEEL_API std::int32_t aoti_torch_dtype_float32() { return kFakeFloat; }
KEEL_API std::int32_t aoti_torch_dtype_float64() { return kFakeDouble; }
KEEL_API std::int32_t aoti_torch_dtype_bfloat16() { return 15; }
KEEL_API std::int32_t aoti_torch_device_type_cpu() { return kFakeCpu; }
KEEL_API std::int32_t aoti_torch_device_type_cuda() { return kFakeCuda; }

}  // extern "C"

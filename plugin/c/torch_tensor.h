// Values of the dispatcher's stack as objects that own them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plugin/c/torch_abi.h"

namespace keel::plugin::torch {

// A tensor, or none.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Handle handle) : handle_(handle) {}
  Tensor(Tensor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Tensor() {
    if (handle_ != nullptr) functions().aoti_torch_delete_tensor_object(handle_);
  }

  explicit operator bool() const { return handle_ != nullptr; }
  Handle get() const { return handle_; }
  // Hands the tensor over to the dispatcher.
  Value release() { return reinterpret_cast<Value>(std::exchange(handle_, nullptr)); }

 private:
  Handle handle_ = nullptr;
};

// An array that a kernel reads or writes: its element type is a number of PyTorch's.
struct Form {
  std::int32_t dtype = 0;
  std::int64_t rank = 0;
  const std::int64_t* sizes = nullptr;
};

inline Form form_of(const Tensor& tensor) {
  Form form;
  std::int64_t* sizes = nullptr;
  KEEL_TORCH(aoti_torch_get_dtype, tensor.get(), &form.dtype);
  KEEL_TORCH(aoti_torch_get_dim, tensor.get(), &form.rank);
  KEEL_TORCH(aoti_torch_get_sizes, tensor.get(), &sizes);
  form.sizes = sizes;
  return form;
}

// Where a tensor lies: PyTorch's number of a type of device, and that of a GPU.
struct Place {
  std::int32_t type = 0, index = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

inline bool is_cuda(const Place& place) {
  static const std::int32_t cuda = functions().aoti_torch_device_type_cuda();
  return place.type == cuda;
}

inline Place place_of(const Tensor& tensor) {
  Place place;
  KEEL_TORCH(aoti_torch_get_device_type, tensor.get(), &place.type);
  if (is_cuda(place)) KEEL_TORCH(aoti_torch_get_device_index, tensor.get(), &place.index);
  return place;
}

// A tensor with the last axis fastest.
inline Tensor empty(const Form& form, const Place& place) {
  std::int64_t strides[64];  // as many axes as PyTorch has
  std::int64_t stride = 1;
  for (std::int64_t axis = form.rank; axis-- > 0;) {
    strides[axis] = stride;
    stride *= form.sizes[axis] > 1 ? form.sizes[axis] : 1;
  }
  Handle made = nullptr;
  KEEL_TORCH(aoti_torch_empty_strided, form.rank, form.sizes, strides, form.dtype, place.type,
             place.index, &made);
  return Tensor(made);
}

inline const void* address(const Tensor& tensor) {
  const void* found = nullptr;
  KEEL_TORCH(torch_get_const_data_ptr, tensor.get(), &found);
  return found;
}

inline bool is_contiguous(const Tensor& tensor) {
  bool is = false;
  KEEL_TORCH(aoti_torch_is_contiguous, tensor.get(), &is);
  return is;
}

// The distances of neighbours along the axes of a tensor, which owns them.
inline const std::int64_t* strides_of(const Tensor& tensor) {
  std::int64_t* strides = nullptr;
  KEEL_TORCH(aoti_torch_get_strides, tensor.get(), &strides);
  return strides;
}

// The tensor itself where its last axis is fastest and its address a multiple of `alignment`, else
// a copy of it.
inline Tensor contiguous(Tensor tensor, const Place& place, std::uintptr_t alignment) {
  const bool fits =
      alignment == 1 || reinterpret_cast<std::uintptr_t>(address(tensor)) % alignment == 0;
  if (is_contiguous(tensor) && fits) return tensor;
  Tensor copy = empty(form_of(tensor), place);
  KEEL_TORCH(aoti_torch_copy_, copy.get(), tensor.get(), 0);
  return copy;
}

inline void* mutable_address(const Tensor& tensor) {
  void* found = nullptr;
  KEEL_TORCH(torch_get_mutable_data_ptr, tensor.get(), &found);
  return found;
}

// Takes an argument `Tensor` from the stack.
inline Tensor take_tensor(Value value) { return Tensor(reinterpret_cast<Handle>(value)); }

// Takes an argument `Tensor?` from the stack.
inline Tensor take_optional(Value value) {
  const auto* held = reinterpret_cast<Value*>(value);
  if (held == nullptr) return {};
  Tensor tensor = take_tensor(*held);
  delete held;
  return tensor;
}

// Takes an argument `str` from the stack and appends it.
inline void take_text(Value value, std::string& to) {
  auto* const text = reinterpret_cast<TextObject*>(value);
  std::size_t length = 0;
  const char* data = nullptr;
  KEEL_TORCH(torch_string_length, text, &length);
  KEEL_TORCH(torch_string_c_str, text, &data);
  to.append(data, length);
  KEEL_TORCH(torch_delete_string, text);
}

// Takes an argument `Tensor[]` from the stack.
inline std::vector<Tensor> take_list(Value value) {
  auto* const list = reinterpret_cast<ListObject*>(value);
  std::size_t size = 0;
  KEEL_TORCH(torch_list_size, list, &size);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < size; ++i) {
    Value item = 0;
    KEEL_TORCH(torch_list_get_item, list, i, &item);
    tensors.push_back(take_tensor(item));
  }
  KEEL_TORCH(torch_delete_list, list);
  return tensors;
}

}  // namespace keel::plugin::torch

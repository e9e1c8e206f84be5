// A tensor in host memory: element type, shape and 64-byte aligned bytes that it owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/core/dtype.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace keel {

inline constexpr std::size_t kAlignment = 64;  // bytes: a cache line and an AVX-512 register

// The smallest multiple of kAlignment that is at least `bytes`.
constexpr std::int64_t aligned_size(std::int64_t bytes) {
  constexpr auto kUnit = static_cast<std::int64_t>(kAlignment);
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  std::int64_t bytes() const { return checked_multiply(shape.elements(), size_of(dtype)); }
  std::string text() const { return fmt::format("{}{}", name_of(dtype), shape.text()); }
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

// Zero-filled memory aligned to kAlignment. Throws Error{kMemory} naming the bytes asked for.
class AlignedBytes {
 public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::int64_t size);
  std::byte* data() const { return data_.get(); }
  std::int64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t size_ = 0;
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, const Shape& shape) : Tensor(TensorType{dtype, shape}) {}
  explicit Tensor(const TensorType& type) : type_(type), bytes_(type.bytes()) {}
  // A tensor of T with the given values in row-major order; their count must match the shape.
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }
  static Tensor scalar(float value) { return of<float>({}, {value}); }

  const TensorType& type() const { return type_; }
  DType dtype() const { return type_.dtype; }
  const Shape& shape() const { return type_.shape; }
  std::int64_t elements() const { return type_.shape.elements(); }
  std::int64_t bytes() const { return bytes_.size(); }
  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }

  // The elements as T. Throws Error{kUsage} when T is not the element type.
  template <class T>
  std::span<T> as();
  template <class T>
  std::span<const T> as() const;

  Tensor clone() const;
  // The same values in another element type (rounded to nearest; float to integer truncates).
  Tensor to(DType dtype) const;
  // One element as double, whatever the element type.
  double at(std::int64_t index) const;

 private:
  TensorType type_;
  AlignedBytes bytes_{4};
};

// Converts n elements from one type to another; the ranges must not overlap.
void convert(const void* src, DType src_dtype, void* dst, DType dst_dtype, std::int64_t n);

// Implementation -----------------------------------------------------------------------------

template <class T>
std::span<T> Tensor::as() {
  check(dtype_of<T>() == dtype(), ErrorKind::kUsage, "tensor: expected {} elements, got {}",
        name_of(dtype_of<T>()), name_of(dtype()));
  return {reinterpret_cast<T*>(data()), static_cast<std::size_t>(elements())};
}

template <class T>
std::span<const T> Tensor::as() const {
  return const_cast<Tensor*>(this)->as<T>();
}

template <class T>
Tensor Tensor::of(const Shape& shape, std::span<const T> values) {
  Tensor result(dtype_of<T>(), shape);
  check(std::int64_t(values.size()) == result.elements(), ErrorKind::kUsage,
        "tensor {}: expected {} values, got {}", shape.text(), result.elements(), values.size());
  std::copy(values.begin(), values.end(), result.as<T>().begin());
  return result;
}

}  // namespace keel

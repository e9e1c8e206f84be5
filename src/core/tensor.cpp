#include "src/core/tensor.h"

#include <cstdlib>
#include <cstring>

#include "src/core/bf16.h"

namespace keel {
namespace {

template <class From, class To>
void convert_elements(const void* src, void* dst, std::int64_t n) {
  const From* from = static_cast<const From*>(src);
  To* to = static_cast<To*>(dst);
  for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

template <class From>
void convert_from(const void* src, void* dst, DType dst_dtype, std::int64_t n) {
  switch (dst_dtype) {
    case DType::kF32:
      return convert_elements<From, float>(src, dst, n);
    case DType::kF64:
      return convert_elements<From, double>(src, dst, n);
    case DType::kI32:
      return convert_elements<From, std::int32_t>(src, dst, n);
    case DType::kU8:
      return convert_elements<From, std::uint8_t>(src, dst, n);
    case DType::kBF16:
      return convert_elements<From, BF16>(src, dst, n);
  }
}

}  // namespace

void AlignedBytes::Free::operator()(std::byte* p) const { std::free(p); }

AlignedBytes::AlignedBytes(std::int64_t size) : size_(size) {
  const std::size_t rounded = (static_cast<std::size_t>(size) / kAlignment + 1) * kAlignment;
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  check(data_ != nullptr, ErrorKind::kMemory, "out of memory: {} bytes asked for", size);
  std::memset(data_.get(), 0, rounded);
}

Tensor Tensor::clone() const {
  Tensor copy(type_);
  std::memcpy(copy.data(), data(), static_cast<std::size_t>(bytes()));
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  Tensor result(dtype, shape());
  convert(data(), type_.dtype, result.data(), dtype, elements());
  return result;
}

double Tensor::at(std::int64_t index) const {
  double value = 0;
  convert(data() + index * size_of(dtype()), dtype(), &value, DType::kF64, 1);
  return value;
}

void convert(const void* src, DType src_dtype, void* dst, DType dst_dtype, std::int64_t n) {
  if (src_dtype == dst_dtype) {
    std::memcpy(dst, src, static_cast<std::size_t>(n * size_of(src_dtype)));
    return;
  }
  switch (src_dtype) {
    case DType::kF32:
      return convert_from<float>(src, dst, dst_dtype, n);
    case DType::kF64:
      return convert_from<double>(src, dst, dst_dtype, n);
    case DType::kI32:
      return convert_from<std::int32_t>(src, dst, dst_dtype, n);
    case DType::kU8:
      return convert_from<std::uint8_t>(src, dst, dst_dtype, n);
    case DType::kBF16:
      return convert_from<BF16>(src, dst, dst_dtype, n);
  }
}

}  // namespace keel

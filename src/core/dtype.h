// Element types of tensors.
#pragma once

#include <cstdint>
#include <string_view>

namespace keel {

enum class DType : std::uint8_t { kF32, kF64, kBF16, kI32, kU8 };

// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kBF16;
}

// "f32", "f64", "bf16", "i32" or "u8".
std::string_view name_of(DType dtype);

// The inverse of name_of. Throws Error{kUsage} for an unknown name.
DType dtype_from_name(std::string_view name);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<float>() {
  return DType::kF32;
}
template <>
constexpr DType dtype_of<double>() {
  return DType::kF64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::kI32;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::kU8;
}

}  // namespace keel

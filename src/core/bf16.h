// bf16 is the upper half of a float32: a sign, eight bits of exponent and the seven of mantissa
// that are stored. Numbers that are not subnormal have an implicit one before these.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>

#include "src/core/dtype.h"

namespace keel {

// Half the distance from 1 to the next bf16. Rounding moves a number by at most this much of it,
// unless the number is subnormal.
inline constexpr double kBf16Eps = 0x1p-8;

// The upper half of a float32, rounded to the nearest, ties to even. NaN stays NaN.
constexpr std::uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return std::uint16_t((bits >> 16) | 0x40u);
  return std::uint16_t((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// A type only for storage: arithmetic is that of float, after a conversion.
class BF16 {
 public:
  BF16() = default;
  constexpr explicit BF16(float value) : bits_(bf16_bits(value)) {}
  template <class T>
  requires std::integral<T> || std::same_as<T, double>
  explicit BF16(T value) : BF16(odd_float(double(value))) {}

  constexpr operator float() const {  // NOLINT: implicit, because it changes no value
    return std::bit_cast<float>(std::uint32_t(bits_) << 16);
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  // The float next to `value` towards 0, its last bit set if it is not `value` itself: rounding it
  // once more is as good as rounding `value` once.
  static float odd_float(double value) {
    const float near = float(value);
    if (double(near) == value || std::isnan(value)) return near;
    auto bits = std::bit_cast<std::uint32_t>(near);
    if (std::abs(double(near)) > std::abs(value)) --bits;
    return std::bit_cast<float>(bits | 1u);
  }

  std::uint16_t bits_ = 0;
};
static_assert(sizeof(BF16) == 2);

// The bf16 next to a number.
inline double rounded_to_bf16(double value) { return double(float(BF16(value))); }

template <>
constexpr DType dtype_of<BF16>() {
  return DType::kBF16;
}

}  // namespace keel

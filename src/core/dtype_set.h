// Sets of element types: those that an input may have, or that a kernel accepts.
#pragma once

#include <array>
#include <bit>
#include <string>

#include "src/core/dtype.h"

namespace keel {

inline constexpr std::array<DType, 5> kAllDTypes{DType::kF32, DType::kF64, DType::kBF16,
                                                 DType::kI32, DType::kU8};

// One type is a set too; larger ones are joined: DType::kF32 | DType::kI32.
class DTypes {
 public:
  constexpr DTypes() = default;
  constexpr DTypes(DType only) : bits_(1u << static_cast<unsigned>(only)) {}  // NOLINT: implicit

  constexpr bool contains(DType dtype) const { return (bits_ & DTypes(dtype).bits_) != 0; }
  constexpr bool is_one() const { return std::has_single_bit(bits_); }
  // "f32", "f32 or i32", "f32, i32 or u8"; "nothing" for the empty set.
  std::string text() const;

  friend constexpr DTypes operator|(DTypes a, DTypes b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(DTypes, DTypes) = default;

 private:
  unsigned bits_ = 0;
};
constexpr DTypes operator|(DType a, DType b) { return DTypes(a) | DTypes(b); }

inline constexpr DTypes kFloatingTypes = DType::kF32 | DType::kF64 | DType::kBF16;
inline constexpr DTypes kAnyType = kFloatingTypes | DType::kI32 | DType::kU8;

}  // namespace keel

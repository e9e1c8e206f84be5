#include "src/core/dtype.h"

#include <array>
#include <utility>

#include "src/core/error.h"

namespace keel {
namespace {

constexpr std::array<std::pair<DType, std::string_view>, 5> kNames{{{DType::kF32, "f32"},
                                                                    {DType::kF64, "f64"},
                                                                    {DType::kBF16, "bf16"},
                                                                    {DType::kI32, "i32"},
                                                                    {DType::kU8, "u8"}}};

}  // namespace

std::string_view name_of(DType dtype) {
  for (const auto& [value, name] : kNames) {
    if (value == dtype) return name;
  }
  return "?";
}

DType dtype_from_name(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  fail(ErrorKind::kUsage, "dtype: expected f32, f64, bf16, i32 or u8, got '{}'", name);
}

}  // namespace keel

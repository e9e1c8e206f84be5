// Integer arithmetic. What PTX leaves open (division by zero) is what NVIDIA's devices do: all bits
// set for a quotient, the dividend for a remainder.
#include <algorithm>
#include <limits>

#include "tests/ptx/integers.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

// Sums and products wrap, so they are those of unsigned numbers.
template <class T>
using Bits = std::make_unsigned_t<T>;

template <class T>
T quotient(T a, T b) {
  if (b == 0) return T(~Bits<T>{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return T(Bits<T>{0} - Bits<T>(a));
  }
  return T(a / b);
}

template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return T(a % b);
}

template <class T>
void add_signed_or_not(Forms& forms, const std::string& type) {
  using B = Bits<T>;
  add<[](T a, T b) { return T(B(a) + B(b)); }>(forms, "add" + type);
  add<[](T a, T b) { return T(B(a) - B(b)); }>(forms, "sub" + type);
  add<[](T a, T b) { return T(u64(B(a)) * u64(B(b))); }>(forms, "mul.lo" + type);
  add<[](T a, T b, T c) { return T(u64(B(a)) * u64(B(b)) + B(c)); }>(forms, "mad.lo" + type);
  add<[](T a, T b) { return quotient(a, b); }>(forms, "div" + type);
  add<[](T a, T b) { return remainder(a, b); }>(forms, "rem" + type);
  add<[](T a, T b) { return std::min(a, b); }>(forms, "min" + type);
  add<[](T a, T b) { return std::max(a, b); }>(forms, "max" + type);
}

template <class T>
void add_signed(Forms& forms, const std::string& type) {
  add<[](T a) { return T(Bits<T>{0} - Bits<T>(a)); }>(forms, "neg" + type);
  add<[](T a) { return a < 0 ? T(Bits<T>{0} - Bits<T>(a)) : a; }>(forms, "abs" + type);
}

template <class T, class Twice>
void add_product(Forms& forms, const std::string& type) {
  constexpr int kWidth = 8 * sizeof(T);
  add<[](T a, T b) { return T(Twice(a) * Twice(b) >> kWidth); }>(forms, "mul.hi" + type);
}

template <class T, class Twice>
void add_wide(Forms& forms, const std::string& type) {
  add<[](T a, T b) { return Twice(Twice(a) * Twice(b)); }>(forms, "mul.wide" + type);
  add<[](T a, T b, Twice c) { return Twice(Bits<Twice>(Twice(a) * Twice(b)) + Bits<Twice>(c)); }>(
      forms, "mad.wide" + type);
}

}  // namespace

void add_integer_forms(Forms& forms) {
  for_each_integer(
      [&]<class T>(const std::string& type) { add_signed_or_not<T>(forms, type); });
  add_signed<s16>(forms, ".s16");
  add_signed<s32>(forms, ".s32");
  add_signed<s64>(forms, ".s64");
  add_product<s32, s64>(forms, ".s32");
  add_product<u32, u64>(forms, ".u32");
  add_product<s64, __int128>(forms, ".s64");
  add_product<u64, unsigned __int128>(forms, ".u64");
  add_wide<s16, s32>(forms, ".s16");
  add_wide<u16, u32>(forms, ".u16");
  add_wide<s32, s64>(forms, ".s32");
  add_wide<u32, u64>(forms, ".u32");
}

}  // namespace keel::ptx

// Bits: logic, shifts, fields.
#include <bit>

#include "tests/ptx/integers.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

template <class T>
void add_logic(Forms& forms, const std::string& type) {
  add<[](T a, T b) { return T(a & b); }>(forms, "and" + type);
  add<[](T a, T b) { return T(a | b); }>(forms, "or" + type);
  add<[](T a, T b) { return T(a ^ b); }>(forms, "xor" + type);
  add<[](T a) { return T(~a); }>(forms, "not" + type);
}

// Shifts beyond the width push everything out.
template <class T>
void add_shifts(Forms& forms, const std::string& width) {
  constexpr u32 kWidth = 8 * sizeof(T);
  using S = std::make_signed_t<T>;
  add<[](T a, u32 by) { return by < kWidth ? T(a << by) : T{0}; }>(forms, "shl.b" + width);
  add<[](T a, u32 by) { return by < kWidth ? T(a >> by) : T{0}; }>(forms, "shr.u" + width);
  add<[](T a, u32 by) { return by < kWidth ? T(a >> by) : T{0}; }>(forms, "shr.b" + width);
  add<[](S a, u32 by) { return S(a >> (by < kWidth ? by : kWidth - 1)); }>(forms, "shr.s" + width);
}

// The lower `length` bits of a, in place of those of b from `first` on.
template <class T>
T inserted(T a, T b, u32 first, u32 length) {
  constexpr u32 kWidth = 8 * sizeof(T);
  first &= 0xff;
  length &= 0xff;
  if (first >= kWidth || length == 0) return b;
  const T field = (length < kWidth ? (T{1} << length) - 1 : ~T{0}) << first;
  return T((b & ~field) | (a << first & field));
}

}  // namespace

void add_bit_forms(Forms& forms) {
  add_logic<u16>(forms, ".b16");
  add_logic<u32>(forms, ".b32");
  add_logic<u64>(forms, ".b64");
  add<[](bool a, bool b) { return a && b; }>(forms, "and.pred");
  add<[](bool a, bool b) { return a || b; }>(forms, "or.pred");
  add<[](bool a, bool b) { return a != b; }>(forms, "xor.pred");
  add<[](bool a) { return !a; }>(forms, "not.pred");
  add_shifts<u16>(forms, "16");
  add_shifts<u32>(forms, "32");
  add_shifts<u64>(forms, "64");
  add<[](u32 a, u32 b, u32 first, u32 length) { return inserted(a, b, first, length); }>(forms,
                                                                                         "bfi.b32");
  add<[](u64 a, u64 b, u32 first, u32 length) { return inserted(a, b, first, length); }>(forms,
                                                                                         "bfi.b64");
  add<[](u32 a) { return u32(std::countl_zero(a)); }>(forms, "clz.b32");
  add<[](u64 a) { return u32(std::countl_zero(a)); }>(forms, "clz.b64");
  add<[](u32 a) { return u32(std::popcount(a)); }>(forms, "popc.b32");
  add<[](u64 a) { return u32(std::popcount(a)); }>(forms, "popc.b64");
}

}  // namespace keel::ptx

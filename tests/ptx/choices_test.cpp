// Comparisons, choices, conversions and moves against their definitions.
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"

namespace keel::ptx {
namespace {

template <class T>
int order(T a, T b) {
  return a == b ? 0 : a < b ? -1 : 1;
}

template <class T>
bool is_number(T x) {
  return std::abs(x) >= 0;
}

template <class T>
void check_integer_order(const std::string& type) {
  check_op("setp.eq" + type, [](T a, T b) { return order(a, b) == 0; });
  check_op("setp.ne" + type, [](T a, T b) { return order(a, b) != 0; });
  check_op("setp.lt" + type, [](T a, T b) { return order(a, b) < 0; });
  check_op("setp.le" + type, [](T a, T b) { return order(a, b) <= 0; });
  check_op("setp.gt" + type, [](T a, T b) { return order(a, b) == 1; });
  check_op("setp.ge" + type, [](T a, T b) { return order(a, b) >= 0; });
}

template <class T>
void check_float_order(const std::string& type) {
#define KEEL_ORDER(name, holds)                                                         \
  check_op("setp." name + type,                                                         \
           [](T a, T b) { return is_number(a) && is_number(b) && order(a, b) holds; }); \
  check_op("setp." name "u" + type,                                                     \
           [](T a, T b) { return !(is_number(a) && is_number(b)) || order(a, b) holds; })
  KEEL_ORDER("eq", == 0);
  KEEL_ORDER("ne", != 0);
  KEEL_ORDER("lt", < 0);
  KEEL_ORDER("le", <= 0);
  KEEL_ORDER("gt", == 1);
  KEEL_ORDER("ge", >= 0);
#undef KEEL_ORDER
  check_op("setp.num" + type, [](T a, T b) { return is_number(a) && is_number(b); });
  check_op("setp.nan" + type, [](T a, T b) { return !is_number(a) || !is_number(b); });
}

template <class T>
void check_choices(const std::string& width, std::string_view kinds) {
  for (const char kind : kinds) {
    check_op(std::string("selp.") + kind + width, [](T a, T b, bool p) {
      if (p) return a;
      return b;
    });
  }
}

// The integer of a type that is nearest to a whole number, by comparisons in float128.
template <class To, class F>
To nearest(F rounded, bool is_nan) {
  using Limits = std::numeric_limits<To>;
  if (is_nan) {  // 0, or only the highest bit where a type has 64 bits
    if (sizeof(F) < 8 && sizeof(To) < 8) return 0;
    return std::numeric_limits<To>::is_signed ? Limits::min() : To(Limits::max() / 2 + 1);
  }
  const __float128 whole = rounded;
  if (whole <= __float128(Limits::min())) return Limits::min();
  if (whole >= __float128(Limits::max())) return Limits::max();
  return To(whole);
}

// The whole number next to x that is even if two are as near.
template <class F>
F even(F x) {
  const F below = std::floor(x), rest = x - below;
  if (rest < F(0.5) || std::isinf(x)) return below;
  if (rest > F(0.5)) return below + 1;
  return std::fmod(below, F(2)) == 0 ? below : below + 1;
}
// The same with the sign of x, if it is zero.
template <class F>
F signed_even(F x) {
  return std::copysign(std::fabs(even(x)), x);
}

template <class To, class F>
void check_to_integer(const std::string& types) {
  check_op("cvt.rni" + types, [](F a) { return nearest<To>(even(a), a != a); });
  check_op("cvt.rzi" + types,
           [](F a) { return nearest<To>(a < 0 ? std::ceil(a) : std::floor(a), a != a); });
  check_op("cvt.rmi" + types, [](F a) { return nearest<To>(std::floor(a), a != a); });
  check_op("cvt.rpi" + types, [](F a) { return nearest<To>(-std::floor(-a), a != a); });
}

template <class F>
void check_of_float(const std::string& type) {
  check_to_integer<std::int32_t, F>(".s32" + type);
  check_to_integer<std::int64_t, F>(".s64" + type);
  check_to_integer<std::uint32_t, F>(".u32" + type);
  check_to_integer<std::uint64_t, F>(".u64" + type);
  check_op("cvt.rni" + type + type, [](F a) { return signed_even(a); });
  check_op("cvt.rzi" + type + type, [](F a) { return std::copysign(std::floor(std::fabs(a)), a); });
  check_op("cvt.rmi" + type + type, [](F a) { return std::floor(a); });
  check_op("cvt.rpi" + type + type, [](F a) { return -std::floor(-a); });
  check_op("cvt.sat" + type + type, [](F a) { return a > 0 ? std::min(a, F(1)) : F(0); });
  check_op("cvt.rn" + type + ".s32", [](std::int32_t a) { return F(__float128(a)); });
  check_op("cvt.rn" + type + ".s64", [](std::int64_t a) { return F(__float128(a)); });
  check_op("cvt.rn" + type + ".u16", [](std::uint16_t a) { return F(__float128(a)); });
  check_op("cvt.rn" + type + ".u32", [](std::uint32_t a) { return F(__float128(a)); });
  check_op("cvt.rn" + type + ".u64", [](std::uint64_t a) { return F(__float128(a)); });
}

// The lower `kBits` of a number, with or without a sign, in a wider one.
template <int kBits, bool kSigned, class To, class From>
To part(From a) {
  unsigned __int128 bits = static_cast<unsigned __int128>(static_cast<__int128>(a));
  const unsigned __int128 mask = (static_cast<unsigned __int128>(1) << kBits) - 1;
  bits &= mask;
  if (kSigned && (bits >> (kBits - 1))) bits |= ~mask;
  return To(bits);
}

template <class From>
void check_from(const std::string& from) {
  check_op("cvt.s8" + from, [](From a) { return part<8, true, std::int16_t>(a); });
  check_op("cvt.u8" + from, [](From a) { return part<8, false, std::uint16_t>(a); });
  check_op("cvt.s16" + from, [](From a) { return part<16, true, std::int16_t>(a); });
  check_op("cvt.u16" + from, [](From a) { return part<16, false, std::uint16_t>(a); });
  check_op("cvt.s32" + from, [](From a) { return part<32, true, std::int32_t>(a); });
  check_op("cvt.u32" + from, [](From a) { return part<32, false, std::uint32_t>(a); });
  check_op("cvt.s64" + from, [](From a) { return part<64, true, std::int64_t>(a); });
  check_op("cvt.u64" + from, [](From a) { return part<64, false, std::uint64_t>(a); });
}

template <bool kSigned>
void check_from_bytes(const std::string& from) {
  using u16 = std::uint16_t;
  check_op("cvt.s16" + from, [](u16 a) { return part<8, kSigned, std::int16_t>(a); });
  check_op("cvt.u16" + from, [](u16 a) { return part<8, kSigned, std::uint16_t>(a); });
  check_op("cvt.s32" + from, [](u16 a) { return part<8, kSigned, std::int32_t>(a); });
  check_op("cvt.u32" + from, [](u16 a) { return part<8, kSigned, std::uint32_t>(a); });
  check_op("cvt.s64" + from, [](u16 a) { return part<8, kSigned, std::int64_t>(a); });
  check_op("cvt.u64" + from, [](u16 a) { return part<8, kSigned, std::uint64_t>(a); });
}

template <class T>
void check_move(const std::string& name) {
  check_op(name, [](T a) { return a; });
}

}  // namespace

void check_comparisons() {
  check_integer_order<std::int16_t>(".s16");
  check_integer_order<std::int32_t>(".s32");
  check_integer_order<std::int64_t>(".s64");
  check_integer_order<std::uint16_t>(".u16");
  check_integer_order<std::uint32_t>(".u32");
  check_integer_order<std::uint64_t>(".u64");
  const auto check_equal = [&]<class T>(T, const std::string& type) {
    check_op("setp.eq" + type, [](T a, T b) { return T(a ^ b) == 0; });
    check_op("setp.ne" + type, [](T a, T b) { return T(a ^ b) != 0; });
  };
  check_equal(std::uint16_t{}, ".b16");
  check_equal(std::uint32_t{}, ".b32");
  check_equal(std::uint64_t{}, ".b64");
  check_float_order<float>(".f32");
  check_float_order<double>(".f64");
  check_choices<std::uint16_t>("16", "bus");
  check_choices<std::uint32_t>("32", "busf");
  check_choices<std::uint64_t>("64", "busf");
}

void check_conversions() {
  check_of_float<float>(".f32");
  check_of_float<double>(".f64");
  check_op("cvt.f64.f32", [](float a) { return double(__float128(a)); });
  check_op("cvt.rn.f32.f64", [](double a) { return float(__float128(a)); });
  check_from<std::int16_t>(".s16");
  check_from<std::uint16_t>(".u16");
  check_from<std::int32_t>(".s32");
  check_from<std::uint32_t>(".u32");
  check_from<std::int64_t>(".s64");
  check_from<std::uint64_t>(".u64");
  check_from_bytes<true>(".s8");
  check_from_bytes<false>(".u8");
}

void check_moves() {
  for (const char* const kind : {"b16", "u16", "s16"}) {
    check_move<std::uint16_t>(std::string("mov.") + kind);
  }
  for (const char* const kind : {"b32", "u32", "s32", "f32"}) {
    check_move<std::uint32_t>(std::string("mov.") + kind);
  }
  for (const char* const kind : {"b64", "u64", "s64", "f64"}) {
    check_move<std::uint64_t>(std::string("mov.") + kind);
  }
  check_move<bool>("mov.pred");
  for (const char* const space : {"global", "shared", "local", "param"}) {
    check_move<std::uint64_t>(std::string("cvta.to.") + space + ".u64");
  }
}

TEST_CASE("ptx: comparisons and choices") { check_comparisons(); }
TEST_CASE("ptx: conversions") { check_conversions(); }
TEST_CASE("ptx: moves") { check_moves(); }

}  // namespace keel::ptx

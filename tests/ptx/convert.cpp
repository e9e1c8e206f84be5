// Conversions. A float becomes the nearest integer that its type has. NaN becomes 0 where neither
// type has 64 bits, and otherwise the integer with only its highest bit set (PTX ISA 9.0, cvt).
#include <limits>
#include <type_traits>

#include "tests/ptx/canonical.h"
#include "tests/ptx/integers.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

template <class To, class From>
To clamped(From x) {
  if (!(x == x)) {
    const bool is_wide = sizeof(From) == 8 || sizeof(To) == 8;
    return is_wide ? To(std::make_unsigned_t<To>(1) << (8 * sizeof(To) - 1)) : To(0);
  }
  // The first power of two beyond the type, which floats have exactly, unlike the largest integer.
  const From beyond = std::ldexp(From(1), std::numeric_limits<To>::digits);
  if (x >= beyond) return std::numeric_limits<To>::max();
  if (x < From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  return To(x);
}

template <class F>
F saturated(F x) {
  return !(x > 0) ? F(0) : x > 1 ? F(1) : x;
}

template <class To, class F>
void add_to_integer(Forms& forms, const std::string& types) {
  add<[](F a) { return clamped<To>(std::nearbyint(a)); }>(forms, "cvt.rni" + types);
  add<[](F a) { return clamped<To>(std::trunc(a)); }>(forms, "cvt.rzi" + types);
  add<[](F a) { return clamped<To>(std::floor(a)); }>(forms, "cvt.rmi" + types);
  add<[](F a) { return clamped<To>(std::ceil(a)); }>(forms, "cvt.rpi" + types);
}

template <class F>
void add_of_float(Forms& forms, const std::string& type) {
  add_to_integer<s32, F>(forms, ".s32" + type);
  add_to_integer<s64, F>(forms, ".s64" + type);
  add_to_integer<u32, F>(forms, ".u32" + type);
  add_to_integer<u64, F>(forms, ".u64" + type);
  add<[](F a) { return canonical(std::nearbyint(a)); }>(forms, "cvt.rni" + type + type);
  add<[](F a) { return canonical(std::trunc(a)); }>(forms, "cvt.rzi" + type + type);
  add<[](F a) { return canonical(std::floor(a)); }>(forms, "cvt.rmi" + type + type);
  add<[](F a) { return canonical(std::ceil(a)); }>(forms, "cvt.rpi" + type + type);
  add<[](F a) { return saturated(a); }>(forms, "cvt.sat" + type + type);
  add<[](s32 a) { return F(a); }>(forms, "cvt.rn" + type + ".s32");
  add<[](s64 a) { return F(a); }>(forms, "cvt.rn" + type + ".s64");
  add<[](u16 a) { return F(a); }>(forms, "cvt.rn" + type + ".u16");
  add<[](u32 a) { return F(a); }>(forms, "cvt.rn" + type + ".u32");
  add<[](u64 a) { return F(a); }>(forms, "cvt.rn" + type + ".u64");
}

// Conversions from From, which is in the lower bits of a register of the type Register.
template <class From, class Register = From>
void add_integers(Forms& forms, const std::string& from) {
  add<[](Register a) { return s16(From(a)); }>(forms, "cvt.s16" + from);
  add<[](Register a) { return u16(From(a)); }>(forms, "cvt.u16" + from);
  add<[](Register a) { return s32(From(a)); }>(forms, "cvt.s32" + from);
  add<[](Register a) { return u32(From(a)); }>(forms, "cvt.u32" + from);
  add<[](Register a) { return s64(From(a)); }>(forms, "cvt.s64" + from);
  add<[](Register a) { return u64(From(a)); }>(forms, "cvt.u64" + from);
}

}  // namespace

void add_convert_forms(Forms& forms) {
  add_of_float<float>(forms, ".f32");
  add_of_float<double>(forms, ".f64");
  add<[](float a) { return double(canonical(a)); }>(forms, "cvt.f64.f32");
  add<[](double a) { return canonical(float(a)); }>(forms, "cvt.rn.f32.f64");
  // A register of 8 bits lies in the lower half of one of 16.
  add_integers<s8, u16>(forms, ".s8");
  add_integers<u8, u16>(forms, ".u8");
  for_each_integer([&]<class From>(const std::string& from) {
    add_integers<From>(forms, from);
    add<[](From a) { return s16(s8(a)); }>(forms, "cvt.s8" + from);
    add<[](From a) { return u16(u8(a)); }>(forms, "cvt.u8" + from);
  });
}

}  // namespace keel::ptx

// Integer instructions against their definitions in numbers of 128 bits.
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"
#include "tests/ptx/integers.h"

namespace keel::ptx {
namespace {

using Long = __int128;

// The lower bits of a number, as its type.
template <class T>
T low(Long value) {
  return T(std::make_unsigned_t<T>(static_cast<unsigned __int128>(value)));
}

template <class T>
void check_arithmetic(const std::string& type) {
  check_op("add" + type, [](T a, T b) { return low<T>(Long(a) + b); });
  check_op("sub" + type, [](T a, T b) { return low<T>(Long(a) - b); });
  check_op("mul.lo" + type, [](T a, T b) { return low<T>(Long(a) * b); });
  check_op("mad.lo" + type, [](T a, T b, T c) { return low<T>(Long(a) * b + c); });
  check_op("div" + type, [](T a, T b) { return b == 0 ? T(-1) : low<T>(Long(a) / b); });
  check_op("rem" + type, [](T a, T b) { return b == 0 ? a : low<T>(Long(a) % b); });
  check_op("min" + type, [](T a, T b) { return Long(a) - b < 0 ? a : b; });
  check_op("max" + type, [](T a, T b) { return Long(a) - b < 0 ? b : a; });
}

template <class T>
void check_signs(const std::string& type) {
  check_op("neg" + type, [](T a) { return low<T>(-Long(a)); });
  check_op("abs" + type, [](T a) { return low<T>(a < 0 ? -Long(a) : Long(a)); });
}

// The upper half of a product, from the products of halves: it shares nothing with the handler.
std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffff);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

void check_products() {
  check_op("mul.hi.u64", [](u64 a, u64 b) { return upper_product(a, b); });
  check_op("mul.hi.s64", [](s64 a, s64 b) {
    return s64(upper_product(u64(a), u64(b)) - (a < 0 ? u64(b) : 0) - (b < 0 ? u64(a) : 0));
  });
  check_op("mul.hi.u32", [](u32 a, u32 b) { return u32(upper_product(u64(a) << 32, b)); });
  check_op("mul.hi.s32", [](s32 a, s32 b) { return s32((Long(a) * b) >> 32); });
  check_op("mul.wide.u16", [](std::uint16_t a, std::uint16_t b) { return low<u32>(Long(a) * b); });
  check_op("mul.wide.s16", [](std::int16_t a, std::int16_t b) { return low<s32>(Long(a) * b); });
  check_op("mul.wide.u32", [](u32 a, u32 b) { return low<u64>(Long(a) * b); });
  check_op("mul.wide.s32", [](s32 a, s32 b) { return low<s64>(Long(a) * b); });
  check_op("mad.wide.u16",
           [](std::uint16_t a, std::uint16_t b, u32 c) { return low<u32>(Long(a) * b + c); });
  check_op("mad.wide.s16",
           [](std::int16_t a, std::int16_t b, s32 c) { return low<s32>(Long(a) * b + c); });
  check_op("mad.wide.u32", [](u32 a, u32 b, u64 c) { return low<u64>(Long(a) * b + c); });
  check_op("mad.wide.s32", [](s32 a, s32 b, s64 c) { return low<s64>(Long(a) * b + c); });
}

template <class T>
void check_logic(const std::string& type) {
  check_op("and" + type, [](T a, T b) { return T(a & b); });
  check_op("or" + type, [](T a, T b) { return T(a | b); });
  check_op("xor" + type, [](T a, T b) { return T((a | b) - (a & b)); });
  check_op("not" + type, [](T a) { return T(-1 - a); });
}

// A shift one place at a time.
template <class T>
T shifted(T value, std::uint32_t by, bool left) {
  for (std::uint32_t i = 0; i < std::min<std::uint32_t>(by, 70); ++i) {
    value = left ? T(value << 1) : T(value >> 1);
  }
  return value;
}

template <class T>
void check_shifts(const std::string& width) {
  using S = std::make_signed_t<T>;
  check_op("shl.b" + width, [](T a, u32 by) { return shifted(a, by, true); });
  check_op("shr.u" + width, [](T a, u32 by) { return shifted(a, by, false); });
  check_op("shr.b" + width, [](T a, u32 by) { return shifted(a, by, false); });
  check_op("shr.s" + width, [](S a, u32 by) { return shifted(a, by, false); });
}

// A field of bits put in one by one, as the PTX ISA defines bfi.
template <class T>
T with_field(T a, T b, std::uint32_t first, std::uint32_t length) {
  constexpr std::uint32_t kWidth = 8 * sizeof(T);
  first &= 0xff;
  length &= 0xff;
  for (std::uint32_t i = 0; i < length && first + i < kWidth; ++i) {
    const T bit = T(1) << (first + i);
    b = (i < kWidth && (a >> i & 1)) ? b | bit : b & ~bit;
  }
  return b;
}

template <class T>
std::uint32_t zeros_before(T a) {
  std::uint32_t count = 0;
  for (int i = 8 * sizeof(T) - 1; i >= 0 && !(a >> i & 1); --i) ++count;
  return count;
}

template <class T>
std::uint32_t ones(T a) {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < 8 * sizeof(T); ++i) count += a >> i & 1;
  return count;
}

template <class T>
void check_fields(const std::string& type) {
  check_op("bfi" + type,
           [](T a, T b, u32 first, u32 length) { return with_field<T>(a, b, first, length); });
  check_op("clz" + type, [](T a) { return zeros_before(a); });
  check_op("popc" + type, [](T a) { return ones(a); });
}

}  // namespace

void check_integers() {
  check_arithmetic<std::int16_t>(".s16");
  check_arithmetic<std::int32_t>(".s32");
  check_arithmetic<std::int64_t>(".s64");
  check_arithmetic<std::uint16_t>(".u16");
  check_arithmetic<std::uint32_t>(".u32");
  check_arithmetic<std::uint64_t>(".u64");
  check_signs<std::int16_t>(".s16");
  check_signs<std::int32_t>(".s32");
  check_signs<std::int64_t>(".s64");
  check_products();
}

void check_bits() {
  check_logic<std::uint16_t>(".b16");
  check_logic<std::uint32_t>(".b32");
  check_logic<std::uint64_t>(".b64");
  check_op("and.pred", [](bool a, bool b) { return a ? b : false; });
  check_op("or.pred", [](bool a, bool b) { return a ? true : b; });
  check_op("xor.pred", [](bool a, bool b) { return a ? !b : b; });
  check_op("not.pred", [](bool a) { return a ? false : true; });
  check_shifts<std::uint16_t>("16");
  check_shifts<std::uint32_t>("32");
  check_shifts<std::uint64_t>("64");
  check_fields<std::uint32_t>(".b32");
  check_fields<std::uint64_t>(".b64");
}

TEST_CASE("ptx: integer arithmetic") { check_integers(); }
TEST_CASE("ptx: logic, shifts and fields") { check_bits(); }

}  // namespace keel::ptx

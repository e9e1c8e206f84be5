// Floating-point instructions against their definitions: computed in float128, of whose 113 bits
// one rounding to 24 or 53 leaves what a single rounding would have.
#include <algorithm>

#include "tests/ptx/approximate.h"
#include "tests/ptx/check_op.h"
#include "tests/ptx/groups.h"

namespace keel::ptx {
namespace {

using Wide = __float128;

template <class T>
T root(T a) {
  if (!(a > 0) || std::isinf(a))
    return a == 0 ? a : a > 0 ? a : std::numeric_limits<T>::quiet_NaN();
  // Newton's steps from the host's approximation of the logarithm, then rounded once.
  int exponent = 0;
  const T fraction = std::frexp(a, &exponent);
  const int even = exponent & ~1;
  const Wide x = Wide(fraction) * (exponent == even ? 1 : 2);
  Wide r = 1;
  for (int i = 0; i < 12; ++i) r = (r + x / r) / 2;
  return std::ldexp(T(r), even / 2);
}

// The smaller one by the PTX ISA: a number before NaN, -0 before +0.
template <class T>
T least(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return b < a ? b : a;
}

template <class T>
void check_type(const std::string& type) {
  check_op("add.rn" + type, [](T a, T b) { return T(Wide(a) + Wide(b)); });
  check_op("sub.rn" + type, [](T a, T b) { return T(Wide(a) - Wide(b)); });
  check_op("mul.rn" + type, [](T a, T b) { return T(Wide(a) * Wide(b)); });
  check_op("div.rn" + type, [](T a, T b) { return T(Wide(a) / Wide(b)); });
  check_op("rcp.rn" + type, [](T a) { return T(Wide(1) / Wide(a)); });
  check_op("sqrt.rn" + type, [](T a) { return root(a); });
  check_op("min" + type, [](T a, T b) { return least(a, b); });
  check_op("max" + type, [](T a, T b) { return -least(-a, -b); });
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kSign = Bits(1) << (8 * sizeof(T) - 1);
  check_op("neg" + type, [](T a) { return std::bit_cast<T>(std::bit_cast<Bits>(a) ^ kSign); });
  check_op("abs" + type, [](T a) { return std::bit_cast<T>(std::bit_cast<Bits>(a) & ~kSign); });
  check_op("copysign" + type, [](T sign, T a) {
    return std::bit_cast<T>((std::bit_cast<Bits>(a) & ~kSign) |
                            (std::bit_cast<Bits>(sign) & kSign));
  });
}

// a b + c with one rounding. Of float64 the product and the sum need more than 113 bits, so there
// only values of few bits are tried.
void check_fused() {
  check_op("fma.rn.f32", [](float a, float b, float c) {
    const Wide exact = Wide(a) * Wide(b);
    const Wide sum = exact + Wide(c);
    // The part that the sum lost decides ties: float128 holds 113 bits, and terms may lie further
    // apart.
    const Wide lost = (exact - (sum - Wide(c))) + (Wide(c) - (sum - (sum - Wide(c))));
    const float near = float(sum);
    if (lost == 0 || !std::isfinite(near) || Wide(near) == sum) return near;
    const Wide nudged = sum + (lost > 0 ? 1 : -1) * (sum > 0 ? sum : -sum) * Wide(0x1p-100);
    return float(nudged);
  });
  applied().insert("fma.rn.f64");
  std::mt19937_64 random(1);
  std::vector<Array> columns(3);
  std::vector<double> expected;
  for (int i = 0; i < 4000; ++i) {
    const auto draw = [&](int bits) { return double(std::int64_t(random() >> (64 - bits))); };
    const double a = draw(53), b = -draw(30), c = draw(53) * 0x1p10;
    columns[0].push_back(bits_of(a));
    columns[1].push_back(bits_of(b));
    columns[2].push_back(bits_of(c));
    expected.push_back(double(Wide(a) * Wide(b) + Wide(c)));
  }
  const Array got = results_of("fma.rn.f64", columns);
  for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(from_bits<double>(got[i]) == expected[i]);
  const double inf = HUGE_VAL, nan = std::nan("");
  const Array edge = results_of("fma.rn.f64", {{bits_of(inf), bits_of(0.0), bits_of(1.0)},
                                               {bits_of(0.0), bits_of(nan), bits_of(inf)},
                                               {bits_of(1.0), bits_of(1.0), bits_of(-inf)}});
  for (const std::uint64_t bits : edge) CHECK(std::isnan(from_bits<double>(bits)));
}

// The float next to the exact value in the direction of a mode: -1 down, 1 up, 0 towards zero. The
// exact value is `sum` and what that lost, of which the sign counts.
template <class T>
T directed(Wide sum, Wide lost, int mode) {
  const T near = T(sum);
  if (!(near == near) || (sum == 0 && lost == 0)) return near;
  const T inf = std::numeric_limits<T>::infinity();
  if (mode == 0) mode = sum > 0 ? -1 : 1;
  const int beyond = Wide(near) > sum   ? 1
                     : Wide(near) < sum ? -1
                     : lost < 0         ? 1
                     : lost > 0         ? -1
                                        : 0;
  return beyond * mode < 0 ? std::nextafter(near, mode < 0 ? -inf : inf) : near;
}

// A sum that is exactly zero is -0 if it is rounded down, and terms differ.
template <class T, int kMode>
T directed_sum(T a, T b) {
  const Wide x = a, y = b, sum = x + y, part = sum - x;
  if (sum == 0) {
    if (a == 0 && b == 0 && std::signbit(a) == std::signbit(b)) return a;
    return kMode < 0 ? -T(0) : T(0);
  }
  const bool is_finite = std::isfinite(a) && std::isfinite(b);
  return directed<T>(sum, is_finite ? (x - (sum - part)) + (y - part) : Wide(0), kMode);
}

template <class T, int kMode>
void check_mode(const std::string& tail) {
  check_op("add" + tail, [](T a, T b) { return directed_sum<T, kMode>(a, b); });
  check_op("sub" + tail, [](T a, T b) { return directed_sum<T, kMode>(a, -b); });
  check_op("mul" + tail, [](T a, T b) {
    const T exact_zero = a * b;
    return a == 0 || b == 0 ? exact_zero : directed<T>(Wide(a) * Wide(b), 0, kMode);
  });
}

// The results that the exponential of nvcc needs, and one case that each mode rounds differently.
template <class T>
void check_fused_modes(const std::string& type) {
  const T a = 1 + std::numeric_limits<T>::epsilon(), tiny = std::numeric_limits<T>::min();
  const auto value = [&](const char* mode, T b, T c) {
    return from_bits<T>(
        results_of("fma." + (mode + type), {{bits_of(a)}, {bits_of(b)}, {bits_of(c)}})[0]);
  };
  const T inf = std::numeric_limits<T>::infinity();
  CHECK(value("rm", T(1), tiny) == a);
  CHECK(value("rz", T(1), tiny) == a);
  CHECK(value("rp", T(1), tiny) == std::nextafter(a, inf));
  CHECK(value("rm", T(-1), -tiny) == std::nextafter(-a, -inf));
  CHECK(value("rz", T(-1), -tiny) == -a);
  CHECK(value("rp", T(-1), -tiny) == -a);
  CHECK(std::isnan(value("rm", inf, -inf)));
}

void check_first_guess(bool is_high) {
  set_high_approximation(is_high);
  const Array gross =
      results_of("rcp.approx.ftz.f64", {{bits_of(3.0), bits_of(0.0), bits_of(-HUGE_VAL),
                                         bits_of(0x1p-1030), bits_of(0x1p1023), bits_of(-2.0)}});
  CAPTURE(is_high);
  CHECK(gross[0] == (bits_of(1 / 3.0) >> 32 << 32) + (std::uint64_t{is_high} << 32));
  CHECK(std::abs(from_bits<double>(gross[0]) * 3 - 1) <= 0x1p-19);
  CHECK(from_bits<double>(gross[1]) == HUGE_VAL);
  CHECK(bits_of(from_bits<double>(gross[2])) == bits_of(-0.0));
  CHECK(from_bits<double>(gross[3]) == HUGE_VAL);
  CHECK(from_bits<double>(gross[4]) == 0);
}

}  // namespace

void check_floats() {
  check_type<float>(".f32");
  check_type<double>(".f64");
  check_fused();
}

void check_rounding() {
  check_mode<float, -1>(".rm.f32");
  check_mode<float, 0>(".rz.f32");
  check_mode<float, 1>(".rp.f32");
  check_mode<double, -1>(".rm.f64");
  check_mode<double, 0>(".rz.f64");
  check_mode<double, 1>(".rp.f64");
  check_fused_modes<float>(".f32");
  check_fused_modes<double>(".f64");
}

void check_approximations() {
  check_first_guess(true);
  check_first_guess(false);
}

TEST_CASE("ptx: floating-point arithmetic to nearest even") { check_floats(); }
TEST_CASE("ptx: directed rounding") { check_rounding(); }
TEST_CASE("ptx: the first guess of a division in double") { check_approximations(); }

TEST_CASE("ptx: approximations of float32 are refused") {
  for (const char* const name : {"ex2.approx.ftz.f32", "rcp.approx.ftz.f32", "lg2.approx.f32"}) {
    CHECK(std::ranges::count(form_names(), name) == 0);
  }
}

TEST_CASE("ptx: NaN that float32 instructions make is the one that PTX names") {
  const std::uint64_t other = bits_of(std::bit_cast<float>(0xffc12345u)), one = bits_of(1.0f);
  CHECK(results_of("add.rn.f32", {{other}, {one}})[0] == 0x7fffffff);
  CHECK(results_of("fma.rn.f32", {{other}, {one}, {one}})[0] == 0x7fffffff);
  CHECK(results_of("min.f32", {{other}, {other}})[0] == 0x7fffffff);
  CHECK(results_of("neg.f32", {{other}})[0] == 0x7fc12345);
}

}  // namespace keel::ptx

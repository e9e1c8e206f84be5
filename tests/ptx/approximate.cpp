#include "tests/ptx/approximate.h"

#include "tests/ptx/canonical.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

int& edge() {
  static int edge = 0;
  return edge;
}

// `exact`, off by at most `error` of itself in the direction that was chosen, as a float. Powers of
// two that the function reaches exactly stay: devices have them exactly.
float approximate(double exact, double error, bool is_exact) {
  if (is_exact || !std::isfinite(exact)) return canonical(flushed(float(exact)));
  return canonical(flushed(float(exact * (1 + edge() * error))));
}

// The PTX ISA, version 9.0, of ex2.approx.ftz.f32: the largest relative error is 2^-22.5 over the
// full range; rounding the result adds nothing to that bound here, since half of it is kept back.
constexpr double kExponentialError = 0x1p-22 * 0.70710678 - 0x1p-24;
// Of rcp.approx.ftz.f32: 1 ulp, that is at most 2^-23 of the result.
constexpr double kReciprocalError = 0x1p-23 - 0x1p-24;

float exponential(float a) {
  const float x = flushed(a);
  return approximate(std::exp2(double(x)), kExponentialError, x == std::floor(x));
}

bool is_power_of_two(float x) {
  int exponent = 0;
  return std::fabs(std::frexp(x, &exponent)) == 0.5f;
}

float reciprocal(float a) {
  const float x = flushed(a);
  return approximate(1 / double(x), kReciprocalError, is_power_of_two(x));
}

// The upper word of 1/a, seen from the upper word of a; the lower word is 0. NVIDIA's divisions
// begin with it and refine it, so it may be off by what its 20 bits leave.
double upper_reciprocal(double a) {
  constexpr std::uint64_t kUpper = ~std::uint64_t{0} << 32;
  const double x = std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) & kUpper);
  if (x != x) return x;
  if (std::fabs(x) < 0x1p-1022) return std::copysign(HUGE_VAL, x);
  const double exact = 1 / x;
  if (std::fabs(exact) < 0x1p-1022) return std::copysign(0.0, exact);
  if (!std::isfinite(exact)) return exact;
  const auto bits = std::bit_cast<std::uint64_t>(exact);
  return std::bit_cast<double>((bits & kUpper) + (std::uint64_t(edge() > 0) << 32));
}

}  // namespace

void set_approximation(int edge_of_error) { edge() = edge_of_error; }

void add_approximate_forms(Forms& forms) {
  add<[](float a) { return exponential(a); }>(forms, "ex2.approx.ftz.f32");
  add<[](float a) { return reciprocal(a); }>(forms, "rcp.approx.ftz.f32");
  add<[](double a) { return upper_reciprocal(a); }>(forms, "rcp.approx.ftz.f64");
}

}  // namespace keel::ptx

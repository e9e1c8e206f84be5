#include "tests/ptx/approximate.h"

#include <algorithm>

#include "tests/ptx/canonical.h"
#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

int& edge() {
  static int edge = 0;
  return edge;
}

// The float nearest to `exact`, moved by so many units in its last place away from zero or towards
// it, if that was chosen. Infinities stay, and a number becomes none.
float approximate(double exact, int most_units) {
  float y = canonical(float(exact));
  const int units = std::min(std::abs(edge()), most_units);
  for (int i = 0; std::isfinite(y) && i < units; ++i) {
    const float next = std::nextafter(y, edge() > 0 ? std::copysign(HUGE_VALF, y) : 0.0f);
    if (std::isfinite(next)) y = next;
  }
  return flushed(y);
}

// NVIDIA's "Parallel Thread Execution ISA", of ex2: "The maximum ulp error is 2 ulp from correctly
// rounded result across the full range of inputs"; of rcp: "The maximum ulp error is 1 across the
// full range of inputs". Exact are the results that their tables name: of zeros and infinities.
constexpr int kExponentialUnits = 2, kReciprocalUnits = 1;

float exponential(float a) {
  const float x = flushed(a);
  return x == 0 ? 1 : approximate(std::exp2(double(x)), kExponentialUnits);
}

float reciprocal(float a) { return approximate(1 / double(flushed(a)), kReciprocalUnits); }

// The upper word of 1/a, seen from the upper word of a; the lower word is 0. NVIDIA's divisions
// begin with it and refine it. The ISA calls it a gross approximation and gives no bound: it is
// assumed to be off by at most what its 20 bits leave.
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

void set_approximation(int units) { edge() = units; }

void add_approximate_forms(Forms& forms) {
  add<[](float a) { return exponential(a); }>(forms, "ex2.approx.ftz.f32");
  add<[](float a) { return reciprocal(a); }>(forms, "rcp.approx.ftz.f32");
  add<[](double a) { return upper_reciprocal(a); }>(forms, "rcp.approx.ftz.f64");
}

}  // namespace keel::ptx

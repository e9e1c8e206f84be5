#include "tests/ptx/approximate.h"

#include <bit>
#include <cmath>

#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

bool& is_high() {
  static bool is_high = false;
  return is_high;
}

// The upper word of 1/a, seen from the upper word of a; the lower word is 0. NVIDIA's divisions
// begin with it and refine it. The ISA calls it a gross approximation and gives no bound: it is
// assumed to be off by at most what its 20 bits leave, and may be chosen from both ends of that.
double upper_reciprocal(double a) {
  constexpr std::uint64_t kUpper = ~std::uint64_t{0} << 32;
  const double x = std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) & kUpper);
  if (x != x) return x;
  if (std::fabs(x) < 0x1p-1022) return std::copysign(HUGE_VAL, x);
  const double exact = 1 / x;
  if (std::fabs(exact) < 0x1p-1022) return std::copysign(0.0, exact);
  if (!std::isfinite(exact)) return exact;
  const auto bits = std::bit_cast<std::uint64_t>(exact);
  return std::bit_cast<double>((bits & kUpper) + (std::uint64_t(is_high()) << 32));
}

}  // namespace

void set_high_approximation(bool wanted) { is_high() = wanted; }

void add_approximate_forms(Forms& forms) {
  add<[](double a) { return upper_reciprocal(a); }>(forms, "rcp.approx.ftz.f64");
}

}  // namespace keel::ptx

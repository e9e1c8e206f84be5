// Floating-point arithmetic rounded to nearest even, as the host's own is. Subnormal numbers stay.
#include "tests/ptx/canonical.h"

#include "tests/ptx/lane_op.h"

namespace keel::ptx {
namespace {

// The smaller number; NaN only if both are, and -0 is below +0.
template <class T>
T smaller(T a, T b) {
  if (!(a == a)) return canonical(b);
  if (!(b == b)) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

template <class T>
void add_float(Forms& forms, const std::string& type) {
  // Without ".rn" ptxas may join a product and a sum, so those forms are not known.
  add<[](T a, T b) { return canonical(a + b); }>(forms, "add.rn" + type);
  add<[](T a, T b) { return canonical(a - b); }>(forms, "sub.rn" + type);
  add<[](T a, T b) { return canonical(a * b); }>(forms, "mul.rn" + type);
  add<[](T a, T b) { return canonical(a / b); }>(forms, "div.rn" + type);
  add<[](T a) { return canonical(T(1) / a); }>(forms, "rcp.rn" + type);
  add<[](T a) { return canonical(std::sqrt(a)); }>(forms, "sqrt.rn" + type);
  add<[](T a, T b, T c) { return canonical(std::fma(a, b, c)); }>(forms, "fma.rn" + type);
  add<[](T a, T b) { return smaller(a, b); }>(forms, "min" + type);
  add<[](T a, T b) { return canonical(-smaller(-a, -b)); }>(forms, "max" + type);
  // The sign of NaN changes, too: these touch one bit.
  add<[](T a) { return -a; }>(forms, "neg" + type);
  add<[](T a) { return std::fabs(a); }>(forms, "abs" + type);
  add<[](T sign, T a) { return std::copysign(a, sign); }>(forms, "copysign" + type);
}

}  // namespace

void add_float_forms(Forms& forms) {
  add_float<float>(forms, ".f32");
  add_float<double>(forms, ".f64");
}

}  // namespace keel::ptx

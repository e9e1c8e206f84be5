// exp, log, tanh, erf, sigmoid, softplus, GELU and their variants on a register of floats. NaN
// stays NaN.
//
// All polynomials are our own weighted minimax fits, made by Lawson's iteration on 800 nodes or
// more against 40-digit values. Coefficients are then rounded to float from the lowest order up,
// and the higher ones are fitted again after each. The comment at each polynomial gives the
// interval and the relative error of the fit. Errors of functions are the largest found over every
// 101st float, in units of 2^-23 of the result, on every target.
#if defined(KEEL_BACKENDS_ONEDNN_SIMD_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KEEL_BACKENDS_ONEDNN_SIMD_MATH_H_
#undef KEEL_BACKENDS_ONEDNN_SIMD_MATH_H_
#else
#define KEEL_BACKENDS_ONEDNN_SIMD_MATH_H_
#endif

#include "backends/onednn/simd/vec.h"

HWY_BEFORE_NAMESPACE();
namespace keel::onednn {
namespace HWY_NAMESPACE {

// sum of coefficients[i] x^i by Horner's rule.
template <std::size_t kCount>
HWY_INLINE Floats polynomial(Floats x, const float (&coefficients)[kCount]) {
  Floats sum = splat(coefficients[kCount - 1]);
  for (std::size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, splat(coefficients[i]));
  return sum;
}

// Unlike Min and Max, these keep NaN on every target.
HWY_INLINE Floats at_least(Floats x, float low) {
  return hn::IfThenElse(hn::Lt(x, splat(low)), splat(low), x);
}
HWY_INLINE Floats at_most(Floats x, float high) {
  return hn::IfThenElse(hn::Gt(x, splat(high)), splat(high), x);
}

// 2^n for n in [-126, 127].
HWY_INLINE Floats power_of_two(Ints n) {
  return hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(Bits(), 127))));
}

// ln 2 = kLn2High + kLn2Low; n * kLn2High is exact for |n| < 2^15.
inline constexpr float kLn2High = 355.0f / 512, kLn2Low = -2.12194440e-4f;

// exp(x + low) for |low| well below 1; low has the bits of the argument that x cannot hold.
// Gives 0 and infinity beyond the range of float, which includes subnormal results; error 0.7.
HWY_INLINE Floats exp_of_sum(Floats x, Floats low) {
  // (exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]; 2^-28.
  constexpr float kExp[] = {0.49999994f, 0.166665211f, 0.0416682921f, 0.00836871564f,
                            0.00138186978f};
  x = at_most(at_least(x, -104.0f), 89.0f);
  const Ints n = hn::NearestInt(hn::Mul(x, splat(1.44269504f)));
  const Floats nf = hn::ConvertTo(F(), n);
  Floats r = hn::NegMulAdd(nf, splat(kLn2High), x);
  r = hn::Add(hn::NegMulAdd(nf, splat(kLn2Low), r), low);
  const Floats tail = hn::MulAdd(hn::Mul(r, r), polynomial(r, kExp), r);
  // Multiplied in two factors, because 2^n alone may overflow or be subnormal.
  const Ints half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(hn::Add(tail, splat(1.0f)), power_of_two(half)),
                 power_of_two(hn::Sub(n, half)));
}

HWY_INLINE Floats exp(Floats x) { return exp_of_sum(x, zero()); }

// log(1 + f) = f - square, where square = f^2 / 2 - s (f^2 / 2 + R), s = f / (2 + f) and
// log(1 + f) = 2 atanh(s) = 2 s + s R(s^2); f in [-0.3, 1].
HWY_INLINE Floats log1p_square(Floats f) {
  // R(w) / w for w = s^2 on [0, 1/9]; 2^-33.
  constexpr float kLog[] = {0.666666746f, 0.399989486f, 0.286152154f, 0.214438081f, 0.242457241f};
  const Floats s = hn::Div(f, hn::Add(f, splat(2.0f)));
  const Floats w = hn::Mul(s, s);
  const Floats half_square = hn::Mul(splat(0.5f), hn::Mul(f, f));
  const Floats r = hn::Mul(w, polynomial(w, kLog));
  return hn::NegMulAdd(s, hn::Add(half_square, r), half_square);
}

// log(x 2^-shift) of a normal x; error 0.7.
HWY_INLINE Floats log_of_normal(Floats x, Floats shift = zero()) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
  const Ints bits = hn::BitCast(Bits(), x);
  const Ints e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(Bits(), 0x3F3504F3)));
  const Floats m = hn::BitCast(F(), hn::Sub(bits, hn::ShiftLeft<23>(e)));
  const Floats f = hn::Sub(m, splat(1.0f)), ef = hn::Sub(hn::ConvertTo(F(), e), shift);
  const Floats square = hn::NegMulAdd(ef, splat(kLn2Low), log1p_square(f));
  return hn::MulAdd(ef, splat(kLn2High), hn::Sub(f, square));
}

// log(x): -infinity at 0, NaN below; error 0.7.
HWY_INLINE Floats log(Floats x) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto is_subnormal = hn::Lt(x, splat(std::numeric_limits<float>::min()));
  Floats y = log_of_normal(hn::IfThenElse(is_subnormal, hn::Mul(x, splat(0x1p24f)), x),
                           hn::IfThenElseZero(is_subnormal, splat(24.0f)));
  y = hn::IfThenElse(hn::Lt(x, splat(infinity)), y, x);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Floats edge = hn::IfThenElse(hn::Eq(x, zero()), splat(-infinity), splat(nan));
  return hn::IfThenElse(hn::Le(x, zero()), edge, y);
}

// exp(-|x|), from which sigmoid and softplus follow without overflow.
HWY_INLINE Floats exp_of_minus_abs(Floats x) { return exp(hn::Neg(hn::Abs(x))); }

// 1 / (1 + exp(-x)); error 1.5.
HWY_INLINE Floats sigmoid(Floats x) {
  const Floats e = exp_of_minus_abs(x), one = splat(1.0f);
  return hn::Div(hn::IfThenElse(hn::Lt(x, zero()), e, one), hn::Add(one, e));
}

// log(1 + exp(-|x|)); error 1.5.
HWY_INLINE Floats softplus_of_minus_abs(Floats x) {
  const Floats e = exp_of_minus_abs(x);
  return hn::Sub(e, log1p_square(e));
}

// log(1 + exp(x)); error 1.5.
HWY_INLINE Floats softplus(Floats x) {
  return hn::Add(at_least(x, 0.0f), softplus_of_minus_abs(x));
}

// A function and its derivative.
struct WithSlope {
  Floats value, slope;
};

// tanh(x) = 1 - 2 q with q = 1 / (exp(2x) + 1), near 0 an odd polynomial; error 1.2. Its derivative
// is 4 q (1 - q), which loses no bits where tanh is near 1; error 1.5, and 0 from 44.4 on.
HWY_INLINE WithSlope tanh_and_slope(Floats x) {
  // (tanh(x) - x) / x^3 for w = x^2, x on [0, 0.625]; 2^-32.
  constexpr float kTanh[] = {-0.333333313f, 0.133332208f,    -0.0539481789f,
                             0.021706894f,  -0.00819001347f, 0.00215268391f};
  const Floats a = hn::Abs(x), one = splat(1.0f);
  const Floats twice_q = hn::Div(splat(2.0f), hn::Add(exp(hn::Add(a, a)), one));
  const Floats large = hn::Sub(one, twice_q);
  const Floats w = hn::Mul(a, a);
  const Floats small = hn::MulAdd(hn::Mul(a, w), polynomial(w, kTanh), a);
  return {hn::CopySign(hn::IfThenElse(hn::Lt(a, splat(0.625f)), small, large), x),
          hn::Mul(twice_q, hn::Sub(splat(2.0f), twice_q))};
}

HWY_INLINE Floats tanh(Floats x) { return tanh_and_slope(x).value; }

// exp(factor a^2) for a in [0, 16) and a factor that is exact. a^2 is taken in two parts, the first
// exact, as its rounding would grow a^2 times in exp.
HWY_INLINE Floats exp_of_square(Floats a, float factor) {
  const Floats high = hn::BitCast(F(), hn::And(hn::BitCast(Bits(), a), hn::Set(Bits(), ~0xFFF)));
  const Floats rest = hn::Mul(hn::Sub(a, high), hn::Add(a, high));
  return exp_of_sum(hn::Mul(splat(factor), hn::Mul(high, high)), hn::Mul(splat(factor), rest));
}

// exp(a^2 / 2) Phi(-a) for a >= 0.
HWY_INLINE Floats normal_tail(Floats a) {
  // The same times (a + 5/2) for t = 1 - 5 / (a + 5/2), a on [0, 14.6]; 2^-25.
  constexpr float kTail[] = {0.706656635f,     -0.433692127f,   0.131987989f,   0.00923783332f,
                             -0.0163934156f,   -0.00161061145f, 0.00254117115f, 0.000703985454f,
                             -0.000324734225f, -0.000171473832f};
  const Floats r = hn::Div(splat(1.0f), hn::Add(a, splat(2.5f)));
  return hn::Mul(r, polynomial(hn::NegMulAdd(splat(5.0f), r, splat(1.0f)), kTail));
}

// The normal distribution at a = |x|: e = exp(-a^2 / 2), and tail with Phi(-a) = e * tail.
struct Normal {
  Floats e, tail;
};

HWY_INLINE Normal normal_at(Floats x) {
  const Floats a = at_most(hn::Abs(x), 15.0f);  // where e is 0 already
  return {exp_of_square(a, -0.5f), normal_tail(a)};
}

// erf(x) = 1 - 2 Phi(-sqrt(2) x), near 0 an odd polynomial; error 0.8. Its derivative is
// exp(-x^2) 2 / sqrt(pi); error 1.5.
HWY_INLINE WithSlope erf_and_slope(Floats x) {
  // erf(x) / x - 1 for w = x^2, x on [0, 1]; 2^-29.
  constexpr float kErf[] = {0.12837917f,  -0.37612626f,   0.11283579f,  -0.026853347f,
                            0.005187162f, -0.0007997853f, 7.806903e-05f};
  const Floats a = at_most(hn::Abs(x), 15.0f), one = splat(1.0f);
  const Floats e = exp_of_square(a, -1.0f);
  const Floats tail = normal_tail(hn::Mul(a, splat(1.41421356f)));
  const Floats large = hn::NegMulAdd(hn::Add(e, e), tail, one);
  const Floats small = hn::MulAdd(a, polynomial(hn::Mul(a, a), kErf), a);
  return {hn::CopySign(hn::IfThenElse(hn::Lt(a, one), small, large), x),
          hn::Mul(e, splat(1.12837917f))};
}

HWY_INLINE Floats erf(Floats x) { return erf_and_slope(x).value; }

// x Phi(x); error 3.5, and 7 where it is below 1e-36.
HWY_INLINE Floats gelu(Floats x) {
  const Normal n = normal_at(x);
  const Floats low = hn::Mul(n.e, n.tail);
  return hn::Mul(x, hn::IfThenElse(hn::Lt(x, zero()), low, hn::Sub(splat(1.0f), low)));
}

// Phi(x) + x phi(x). With w = e (|x| / sqrt(2 pi) - tail) it is 1 + w right of 0 and -w left of it,
// where it crosses 0 at -0.75; error 4, relative to |Phi(x)| + |x phi(x)|.
HWY_INLINE Floats gelu_derivative(Floats x) {
  const Normal n = normal_at(x);
  const Floats w = hn::Mul(n.e, hn::MulSub(hn::Abs(x), splat(0.398942280f), n.tail));
  return hn::IfThenElse(hn::Lt(x, zero()), hn::Neg(w), hn::Add(splat(1.0f), w));
}

}  // namespace HWY_NAMESPACE
}  // namespace keel::onednn
HWY_AFTER_NAMESPACE();

#endif  // toggled guard

// exp, sigmoid, tanh, erf and the normal distribution of float, made only of instructions that
// round as IEEE says. CUDA's own take ex2.approx, which may be 2.5 units in the last place off, and
// rcp.approx: errors beyond what the bounds of docs/numerics.md allow, and not the same on every
// GPU. These have the same bits everywhere; methods and fits are those of
// backends/onednn/simd/math.h. Errors are the largest found over every 101st float, in units of
// 2^-23 of the result. NaN stays NaN.
#pragma once

#include <bit>
#include <cmath>

#include "backends/cuda/device.h"

namespace keel::cuda {

// c + x (more[0] + x (more[1] + ...)), by Horner's rule.
template <class... More>
__device__ float polynomial(float x, float c, More... more) {
  if constexpr (sizeof...(more) == 0) {
    return c;
  } else {
    return fmaf(polynomial(x, more...), x, c);
  }
}

// exp(x + low) for |low| well below 1; low has the bits of the argument that x cannot hold.
// Gives 0 and infinity beyond the range of float, which includes subnormal results; error 0.7. It
// has no branch, since nvcc needs fewer registers for choices.
__device__ inline float exp_of_sum(float x, float low) {
  constexpr float kLeast = -103.972084f, kMost = 88.7228317f;  // beyond is 0, or infinity
  // A number as large as this has no bits after the point, so that adding it rounds.
  constexpr float kRounder = 0x1.8p23f;
  constexpr float kLn2High = 355.0f / 512, kLn2Low = -2.12194440e-4f;
  const float rounded = fmaf(x, 1.44269504f, kRounder), n = rounded - kRounder;
  const float r = fmaf(-n, kLn2Low, fmaf(-n, kLn2High, x)) + low;
  // (exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]; 2^-28.
  const float fit =
      polynomial(r, 0.49999994f, 0.166665211f, 0.0416682921f, 0.00836871564f, 0.00138186978f);
  const float y = fmaf(r * r, fit, r) + 1;
  // n, which the last bits of `rounded` hold, is added to the exponent of y. Of a small result that
  // is done in two steps, because it may be subnormal.
  const bool is_small = x < -44;
  const std::uint32_t n_bits = std::bit_cast<std::uint32_t>(rounded) + (is_small ? 64 : 0);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(y) + (n_bits << 23);
  const float scaled = std::bit_cast<float>(bits) * (is_small ? 0x1p-64f : 1.0f);
  const float above = x <= kMost ? scaled : x + INFINITY;
  return x < kLeast ? 0 : above;
}

__device__ inline float exponential(float x) { return exp_of_sum(x, 0); }

// log(x) of a normal x; error 0.7.
__device__ inline float log_of_normal(float x) {
  constexpr float kLn2High = 355.0f / 512, kLn2Low = -2.12194440e-4f;
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::int32_t e = std::int32_t(bits - 0x3F3504F3u) >> 23;
  const float f = std::bit_cast<float>(bits - (std::uint32_t(e) << 23)) - 1, ef = float(e);
  // log(1 + f) = f - square with s = f / (2 + f); 2 s + s R(s^2), R(w) / w on [0, 1/9]; 2^-33.
  const float s = f / (f + 2), w = s * s, half_square = 0.5f * (f * f);
  const float r =
      w * polynomial(w, 0.666666746f, 0.399989486f, 0.286152154f, 0.214438081f, 0.242457241f);
  const float square = fmaf(-s, half_square + r, half_square);
  return fmaf(ef, kLn2High, f - fmaf(-ef, kLn2Low, square));
}

// 1 / (1 + exp(-x)); error 1.5.
__device__ inline float sigmoid(float x) { return 1 / (1 + exponential(-x)); }

// log(1 + exp(x)); CUDA's log1p takes no approximate instruction.
__device__ inline float softplus(float x) {
  return (x <= 0 ? 0 : x) + log1pf(exponential(-fabsf(x)));
}

// A function and its derivative.
struct WithSlope {
  float value, slope;
};

// tanh(x) = 1 - 2 q with q = 1 / (exp(2x) + 1), near 0 an odd polynomial; error 1.2. Its derivative
// is 4 q (1 - q), which loses no bits where tanh is near 1; error 1.5, and 0 from 44.4 on.
__device__ inline WithSlope tangent_and_slope(float x) {
  const float a = fabsf(x), w = a * a;
  // (tanh(x) - x) / x^3 for w = x^2, x on [0, 0.625]; 2^-32.
  const float fit = polynomial(w, -0.333333313f, 0.133332208f, -0.0539481789f, 0.021706894f,
                               -0.00819001347f, 0.00215268391f);
  const float twice_q = 2 / (exponential(a + a) + 1);
  const float y = a < 0.625f ? fmaf(a * w, fit, a) : 1 - twice_q;
  return {copysignf(y, x), twice_q * (2 - twice_q)};
}

__device__ inline float hyperbolic_tangent(float x) { return tangent_and_slope(x).value; }

// exp(factor a^2) for a in [0, 16) and a factor that is exact. a^2 is taken in two parts, the first
// exact, as its rounding would grow a^2 times in exp.
__device__ inline float exp_of_square(float a, float factor) {
  const auto high = std::bit_cast<float>(std::bit_cast<std::uint32_t>(a) & 0xfffff000u);
  return exp_of_sum(factor * (high * high), factor * ((a - high) * (a + high)));
}

// exp(a^2 / 2) Phi(-a) for a >= 0.
__device__ inline float normal_tail(float a) {
  const float r = 1 / (a + 2.5f);
  // The same times (a + 5/2) for 1 - 5 / (a + 5/2), a on [0, 14.6]; 2^-25.
  return r * polynomial(fmaf(-5.0f, r, 1.0f), 0.706656635f, -0.433692127f, 0.131987989f,
                        0.00923783332f, -0.0163934156f, -0.00161061145f, 0.00254117115f,
                        0.000703985454f, -0.000324734225f, -0.000171473832f);
}

// The normal distribution at a = |x|: e = exp(-a^2 / 2), and tail with Phi(-a) = e * tail.
struct Normal {
  float e, tail;
};

__device__ inline Normal normal_at(float x) {
  const float a = fabsf(x) > 15 ? 15 : fabsf(x);  // where e is 0 already
  return {exp_of_square(a, -0.5f), normal_tail(a)};
}

// erf(x) = 1 - 2 Phi(-sqrt(2) x), near 0 an odd polynomial; error 0.8. Its derivative is
// exp(-x^2) 2 / sqrt(pi); error 1.5.
__device__ inline WithSlope error_function_and_slope(float x) {
  const float a = fabsf(x) > 15 ? 15 : fabsf(x), e = exp_of_square(a, -1);
  // erf(x) / x - 1 for w = x^2, x on [0, 1]; 2^-29.
  const float fit = polynomial(a * a, 0.12837917f, -0.37612626f, 0.11283579f, -0.026853347f,
                               0.005187162f, -0.0007997853f, 7.806903e-05f);
  const float large = fmaf(-(e + e), normal_tail(a * 1.41421356f), 1.0f);
  return {copysignf(a < 1 ? fmaf(a, fit, a) : large, x), e * 1.12837917f};
}

// x Phi(x); error 3.5, and 7 where it is below 1e-36.
__device__ inline float gelu(float x) {
  const Normal n = normal_at(x);
  const float low = n.e * n.tail;
  return x * (x < 0 ? low : 1 - low);
}

// Phi(x) + x phi(x); error 4, relative to |Phi(x)| + |x phi(x)|. Left of 0 the two parts are
// subtracted while they still lack the factor e, so that no bits are lost where they cross.
__device__ inline float gelu_derivative(float x) {
  const Normal n = normal_at(x);
  const float w = n.e * fmaf(fabsf(x), 0.398942280f, -n.tail);
  return x < 0 ? -w : 1 + w;
}

}  // namespace keel::cuda

// Numbers with a bound on their error, for chains of float32 operations (running error analysis,
// Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.3).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "frontend/compare/bounds/bounds.h"
#include "frontend/compare/bounds/node_bounds.h"
#include "src/core/bf16.h"
#include "src/ops/elementwise.h"

namespace keel::compare {

// The least normal float: smaller numbers may become 0.
inline constexpr double kTiny = 0x1p-126;

// The error of a sum of k terms, or of k products, relative to the sum of their sizes: k eps holds
// for every order of the additions (Higham 2002, eq. 4.4). If the roundings do not all have one
// sign, 8 sqrt(k) eps holds except with a probability of 2 exp(-8^2 / 2) = 3e-14 (Higham & Mary
// 2019, "A new approach to probabilistic rounding error analysis", theorem 2.4). Two more eps are
// for the rounding of a product and of the result.
inline double sum_error(std::int64_t k) {
  const double terms = double(std::max<std::int64_t>(k, 0));
  return kEps * (std::min(terms, 8 * std::sqrt(terms)) + 2);
}

// The terms of one sum in a kernel: their number, the sum of their sizes, the sum of their squares,
// and the sum itself.
struct SumTerms {
  double count = 0, sizes = 0, squares = 0, total = 0;

  void add(double term) {
    ++count;
    sizes += std::abs(term);
    squares += term * term;
    total += term;
  }
};

// The error that rounding adds to such a sum in any order of the additions. `largest` assumes
// errors of independent signs in proportion to the running sums, and adds a drift if most terms
// have one sign: then running sums grow steadily, and the roundings of equal terms are equal.
// `usual` is the same with the root mean square of the terms in place of their sizes, and
// `deviation` is that of a single result without drift (docs/numerics.md, Results of any program).
struct SumError {
  double largest = 0, usual = 0, deviation = 0;
};
SumError any_sum_error(const SumTerms& terms);

// any_sum_error's `largest` relative to the sum of the sizes; 0 for a sum without terms.
inline double any_relative_error(const SumTerms& terms) {
  return terms.sizes > 0 ? any_sum_error(terms).largest / terms.sizes : 0;
}

// A value, and the largest distance of a float32 from it.
struct Err {
  double value = 0, error = 0;

  Err() = default;
  Err(double v, double e = 0) : value(v), error(e) {}  // NOLINT: numbers are exact
  double size() const { return std::abs(value) + error; }
  // The number after `roundings` more roundings of the result.
  Err rounded(double roundings = 1) const {
    return {value, error + roundings * kEps * size() + kTiny};
  }
};

// The number rounded to bf16, whose error shows where it decides which of two neighbours is taken.
inline Err in_bf16(const Err& a) {
  const double value = rounded_to_bf16(a.value);
  const double above = rounded_to_bf16(a.value + a.error) - value;
  const double below = value - rounded_to_bf16(a.value - a.error);
  return {value, std::max(above, below) + kTiny};
}

// How far two numbers, `value` and one that is within `distance` of it, may be apart after both
// have been rounded to bf16. Mostly that is next to nothing, and a distance of bf16 where a tie
// between two of its numbers is within `distance`. Equal numbers stay equal; NaN stays NaN.
inline double apart_in_bf16(double value, double distance) {
  if (!(distance > 0)) return distance;
  return in_bf16({value, distance}).error;
}

// A factor that instructions for bf16 may take as 0.
inline Err narrow_factor(double value) {
  return {value, std::abs(value) < kTiny ? std::abs(value) : 0};
}

// A constant that float32 may not represent exactly.
inline Err constant(double value) { return Err(value).rounded(); }

inline Err operator+(const Err& a, const Err& b) {
  return Err(a.value + b.value, a.error + b.error).rounded();
}
inline Err operator-(const Err& a, const Err& b) {
  return Err(a.value - b.value, a.error + b.error).rounded();
}
inline Err operator*(const Err& a, const Err& b) {
  return Err(a.value * b.value, a.error * b.size() + std::abs(a.value) * b.error).rounded();
}
inline Err operator/(const Err& a, const Err& b) {
  const double least = std::abs(b.value) - b.error, quotient = a.value / b.value;
  if (least <= 0) return {quotient, INFINITY};
  return Err(quotient, (a.error + std::abs(quotient) * b.error) / least).rounded(2);
}
inline Err sqrt(const Err& a) {
  const double root = std::sqrt(std::max(a.value, 0.0));
  const double least = std::sqrt(std::max(a.value - a.error, 0.0));
  return Err(root, std::max(root - least, std::sqrt(std::max(a.value + a.error, 0.0)) - root))
      .rounded(2);
}

// An element-wise code applied to such operands; docs/numerics.md has its own rounding.
Err applied(EwCode code, const std::array<Err, 3>& operands, Kernels kernels = Kernels::kKeel);

}  // namespace keel::compare

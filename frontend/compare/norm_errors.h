// How far the result of a norm on a backend is from the float64 reference's.
#pragma once

#include "frontend/compare/norm_cases.h"

namespace keel::compare {

// What a norm's own outputs say of its backward, by port:
//     xhat = (x - mean) * rstd,   dx = factor * r * (g - mean(g) - slope * xhat),   g = dy * gain
struct NormTerms {
  int mean = 1;  // 0: nothing is subtracted
  int rstd = 2;
  int factor = 2, r = 0;  // r 0: it is 1
  // The state that is the slope; -1: it is the mean of g * xhat. By that scale_norm is judged too,
  // whose slope is the sum: it makes the term smaller and so the scale stricter.
  int slope_state = -1;
};
// Throws Error{kUsage} when the op is no norm of x.
NormTerms norm_terms(const OpInfo& forward);

// The largest errors of a result against the reference's, in units of the float eps 2^-23,
//   y            relative to max(1, |expected|), and so a statistic, which of a norm that subtracts
//                a mean may also be relative to its group's deviation; rstd relative to itself;
//   dx           relative to the terms that cancel in a group:
//                factor * r * max(max |g|, max |slope * xhat|);
//   dgain, dbias relative to the sums of |dy * xhat| and of |dy|; a mean that is subtracted makes
//                an error of 1 eps in xhat, and the first a sum of |dy| * max(1, |xhat|).
// Infinite where only one of the two is NaN, or where a value beyond the floats is not met by the
// largest float or infinity of its sign. Throws Error{kUsage} when the norm has other groups than
// c.
struct NormErrors {
  double forward = 0, dx = 0, parameters = 0;
};
NormErrors norm_errors(const NormCase& c, const NormData& data, const NormResult& got,
                       const NormResult& expected);

// What every norm keeps, of y and of the gradients.
inline constexpr double kForwardBound = 16, kBackwardBound = 64;

}  // namespace keel::compare

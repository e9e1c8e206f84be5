// The distance of a norm's result on a backend from that of the float64 reference.
#pragma once

#include <optional>

#include "bench/norm_cases.h"
#include "frontend/compare/bounds/bounds.h"
#include "src/ops/norm/norm.h"

namespace keel::bench {

// The outputs of a norm that are the terms of its backward,
//     xhat = (x - mean) * rstd,   dx = factor * r * (g - mean(g) - slope * xhat),   g = dy * gain
struct NormTerms {
  // Places of outputs. Without a mean nothing is subtracted; without r, r is 1.
  std::optional<int> mean = CentredOutput::kMean;
  int rstd = CentredOutput::kRstd, factor = CentredOutput::kRstd;
  std::optional<int> r = std::nullopt;
  // The number of the state that is the slope. Without one the slope is the mean of g * xhat. In
  // scale_norm it is a sum, but it is compared as if it were the mean; this makes the term smaller,
  // and so the scale of its errors stricter.
  std::optional<std::size_t> slope_state = std::nullopt;
};
// The terms of a norm's forward op. Throws Error{kUsage} if the op is not a norm of x.
NormTerms norm_terms(const OpInfo& forward);

// The largest errors of a result against the reference's, in units of the float eps 2^-23. They are
// relative to these scales:
//   y, statistics   max(1, |expected|). For the statistics of a norm that subtracts a mean it is at
//                   least the deviation of the group, and for rstd it is |expected| itself.
//   dx              the terms that cancel in a group, factor * r * max(max |g|, max |slope * xhat|)
//   dgain           the sum of |dy * xhat|, or of |dy| * max(1, |xhat|) for a norm that subtracts a
//                   mean, because that alone makes an error of 1 eps in xhat
//   dbias           the sum of |dy|; both sums at least 2^-126
// The scales of a norm of elements (NormCurve), with k = dy gain f'(u):
//   y               max(1, |expected|)
//   dx              |alpha dy gain|
//   dgain, dbias    the sums of |dy| max(|f(u)|, f'(u) (|alpha x| + |shift|)) and of |dy|
//   dalpha, dshift  the sums of |k x| and |k|, each term times 1 + u^2, by which the rounding of u
//                   grows in f'(u)
// An error is infinite if only one of the two values is NaN, and if a value is beyond the floats
// and the other is not the largest float or infinity of its sign. Throws Error{kUsage} if the norm
// has other groups than c.
struct NormErrors {
  double forward = 0, dx = 0, parameters = 0;
};
NormErrors norm_errors(const NormCase& c, const NormData& data, const NormResult& got,
                       const NormResult& expected);

}  // namespace keel::bench

// Errors that rounding may add to float32 results.
#pragma once

#include "src/core/tensor.h"

namespace keel::compare {

inline constexpr double kEps = 0x1p-24;  // half the distance from 1 to the next float
// Every norm keeps these bounds, in units of 2 kEps on the scales of norm_errors.h: the first for y
// and the statistics, the second for the gradients.
inline constexpr double kForwardBound = 16, kBackwardBound = 64;

// Bound on a sum of k products of standard normal numbers. After i terms the running sum is about
// sqrt(i) large, and rounding adds an error of up to eps of that. The k errors have either sign, so
// together their deviation is at most eps * sqrt(1 + 2 + ... + k), about 0.7 eps k (less, as most
// errors are smaller): eps * sqrt(k) relative to the sum. 4 eps k is more than five deviations, for
// the largest of up to a million elements; 32 eps covers the one or two roundings of a short sum.
inline double sum_bound(std::int64_t k) { return kEps * (4 * double(k) + 32); }

// The largest |got - expected|; infinite where only one of them is NaN. Their shapes must agree.
double largest_error(const Tensor& got, const Tensor& expected);

}  // namespace keel::compare

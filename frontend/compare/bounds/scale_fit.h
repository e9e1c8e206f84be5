// Checks whether a result is off by a common factor: a fault that no single element shows.
#pragma once

#include "src/core/tensor.h"

namespace keel::compare {

// Fits a scale to the errors e = got - expected of a slice, a = <e, expected> / <expected,
// expected>, in units of what independent rounding errors explain:
//     kSharedRoundings eps + 8 sqrt(sum of (deviation expected)^2) / <expected, expected>
// (8 deviations of a, and the roundings of constants that all elements share.) The slices are the
// whole tensor and, if it has two axes or more, each place along each axis: rows, columns,
// channels. Returns the largest value over the slices; above 1 the result is suspect. 0 for an
// empty tensor or one whose errors or deviations are not finite.
double scale_fit(const Tensor& got, const Tensor& expected, const Tensor& deviation);

}  // namespace keel::compare

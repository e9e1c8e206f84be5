// The explicit backward of an op beside central differences of its forward.
#pragma once

#include "frontend/compare/cases/op_case.h"

namespace keel::compare {

// The largest |numeric - explicit| over all elements of the inputs, which are float64, relative to
// the largest explicit gradient of its input (but at least 1e-3). `backend` computes in float64.
// Differences at a distance `step` are off by O(step^2) and by rounding of O(eps / step): about
// 1e-10 and 1e-11 of the scale at 1e-5, so a result beyond 1e-7 is a wrong backward.
double gradient_error(Backend& backend, const OpCase& op_case, double step = 1e-5);

}  // namespace keel::compare

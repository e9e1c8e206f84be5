// The explicit backward of an op beside central differences of its forward.
#pragma once

#include <limits>

#include "frontend/compare/cases/op_case.h"

namespace keel::compare {

struct GradientCheck {
  double step = 1e-5;  // the distance of a difference
  int input = -1;      // the only input that is checked; -1: all
  // Inputs of more elements are checked along one random direction, not element by element.
  std::int64_t most_elements = std::numeric_limits<std::int64_t>::max();
};

// The largest |numeric - explicit| over the elements of the floating-point inputs, which are
// float64, relative to the largest explicit gradient of its input (along a direction: to its
// length), but at least 1e-3. `backend` computes in float64. Differences are off by O(step^2) and
// by rounding of O(eps / step): about 1e-10 and 1e-11 of the scale at 1e-5, so a result beyond 1e-7
// is a wrong backward.
double gradient_error(Backend& backend, const OpCase& op_case, const GradientCheck& how = {});

}  // namespace keel::compare

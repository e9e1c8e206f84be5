// The gradient oracle: central differences in float64 on the reference backend's forward.
#pragma once

#include "tests/support/graph_runner.h"

namespace keel::test {

struct GradcheckOptions {
  double step = 1e-5;
  double tolerance = 1e-7;  // on gradient_error, with room for curvature
  // Inputs with more elements are checked along one random direction instead of element by element.
  std::int64_t max_elements = 64;
  // Inputs whose gradient is not checked (not differentiable, or held constant by definition).
  std::vector<int> skip;
};

// CHECKs the explicit backward of a case by compare::gradient_error, input by input.
void gradcheck(const OpCase& op_case, const GradcheckOptions& options = {});

}  // namespace keel::test

// The gradient oracle: central differences in float64 on the reference backend's forward.
#pragma once

#include "tests/support/graph_runner.h"

namespace keel::test {

struct GradcheckOptions {
  double step = 1e-5;
  double tolerance = 1e-7;  // on |numeric - explicit| / max |gradient of that input|
  // Inputs with more elements are checked along one random direction instead of element by element.
  std::int64_t max_elements = 64;
  // Inputs whose gradient is not checked (not differentiable, or held constant by definition).
  std::vector<int> skip;
};

// Checks (doctest CHECK) the explicit backward of a case against central differences of its
// forward. The truncation error of step h is O(h^2) and the rounding error O(eps / h): about 1e-10
// and 1e-11 of the scale at h = 1e-5, so 1e-7 leaves room for curvature only.
void gradcheck(const OpCase& op_case, const GradcheckOptions& options = {});

}  // namespace keel::test

#include "tests/support/gradcheck.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "backends/reference/backend.h"
#include "frontend/compare/cases/gradient_check.h"

namespace keel::test {

void gradcheck(const OpCase& op_case, const GradcheckOptions& options) {
  reference::ReferenceBackend backend;
  for (std::size_t i = 0; i < op_case.inputs.size(); ++i) {
    const bool skipped = std::ranges::find(options.skip, int(i)) != options.skip.end();
    if (skipped || !is_floating(op_case.inputs[i].dtype())) continue;
    REQUIRE(op_case.inputs[i].dtype() == DType::kF64);
    CAPTURE(i);
    CHECK(gradient_error(backend, op_case, {options.step, int(i), options.max_elements}) <=
          options.tolerance);
  }
}

}  // namespace keel::test

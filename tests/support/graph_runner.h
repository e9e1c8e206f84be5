// Runs of ops and graphs in tests, with the tools of keel's own comparisons.
#pragma once

#include "frontend/compare/cases/op_case.h"

namespace keel::test {

using namespace keel::compare;  // NOLINT: tests say run_case, random_normal, ...

}  // namespace keel::test

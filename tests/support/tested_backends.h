// The backends that an oracle judges.
#pragma once

#include <string>
#include <vector>

#include "backends/backends.h"

namespace keel::test {

// The reference and the backend under test, which may be the same.
inline std::vector<std::string> tested_backends() { return {"reference", default_backend()}; }

}  // namespace keel::test

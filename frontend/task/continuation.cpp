#include "frontend/task/continuation.h"

#include <cmath>

#include "src/core/error.h"

namespace keel::task {

void SampleOptions::validate() const {
  check(temperature >= 0 && std::isfinite(temperature), ErrorKind::kUsage,
        "temperature: expected 0 or more, got {}", temperature);
  check(top_k >= 0, ErrorKind::kUsage, "top_k: expected 0 or more, got {}", top_k);
  check(top_p > 0 && top_p <= 1, ErrorKind::kUsage, "top_p: expected above 0 to 1, got {}", top_p);
}

}  // namespace keel::task

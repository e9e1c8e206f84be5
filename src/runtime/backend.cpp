#include "src/runtime/backend.h"

#include <chrono>

namespace keel {

double Backend::seconds(const std::function<void()>& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  body();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace keel

#include "src/core/registry.h"

#include <atomic>

#include "src/core/error.h"

namespace keel {
namespace {

std::atomic<int> frozen_times = 0;  // programs can run in one process, also at a time

}  // namespace

FrozenRegistries::FrozenRegistries() { ++frozen_times; }
FrozenRegistries::~FrozenRegistries() { --frozen_times; }

void expect_not_frozen(std::string_view list, std::string_view name) {
  check(frozen_times == 0, ErrorKind::kUsage,
        "{}: expected before the program starts, got '{}' while it runs", list, name);
}

}  // namespace keel

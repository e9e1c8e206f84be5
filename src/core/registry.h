// When programs may add to the lists that are known by name: ops and their kernels, bounds and
// cases, norms, tasks. Nothing locks these lists, and what they give out is valid until the next
// addition, so nothing may be added while a program works with them.
#pragma once

#include <string_view>

namespace keel {

// While one of these lives, every list stays as it is.
class FrozenRegistries {
 public:
  FrozenRegistries();
  ~FrozenRegistries();
  FrozenRegistries(const FrozenRegistries&) = delete;
  FrozenRegistries& operator=(const FrozenRegistries&) = delete;
};

// Throws Error{kUsage} while the lists are frozen: "op: expected before the program starts, got
// 'my_op' while it runs". Every function that adds to a list calls this.
void expect_not_frozen(std::string_view list, std::string_view name);

}  // namespace keel

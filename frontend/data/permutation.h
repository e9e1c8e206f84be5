// Random orders that are the same on every machine.
#pragma once

#include <cstdint>
#include <ranges>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/core/rng.h"

namespace keel::data {

// Puts the items in a random order, every order equally likely, by Fisher and Yates: the last place
// takes any item, the place before it any of the rest, and so on. A pure function of the items,
// their order and `random`. Throws Error{kUsage} for 2^32 items or more.
template <std::ranges::random_access_range Items>
void shuffle(Items&& items, const Philox& random) {
  const auto count = std::uint64_t(std::ranges::size(items));
  check(count < std::uint64_t{1} << 32, ErrorKind::kUsage,
        "[shuffle] expected fewer than 2^32 rows, got {}", count);
  for (std::uint64_t i = count; i-- > 1;) {
    std::swap(items[i], items[random.below(i, static_cast<std::uint32_t>(i + 1))]);
  }
}

// 0 to rows - 1 in the order that `random` gives them.
std::vector<std::int64_t> permutation(std::int64_t rows, const Philox& random);

}  // namespace keel::data

// Random orders that are the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/core/rng.h"

namespace keel::data {

// Puts the numbers in a random order, every one equally likely, by Fisher and Yates: the last place
// takes one of all, and so on down. A pure function of the numbers, their order and `random`.
// Throws Error{kUsage} for 2^32 numbers or more.
void shuffle(std::span<std::int64_t> numbers, const Philox& random);

// 0 to rows - 1 in the order that `random` gives them.
std::vector<std::int64_t> permutation(std::int64_t rows, const Philox& random);

}  // namespace keel::data

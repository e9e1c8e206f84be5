// Whether the heads of a sentence's tokens make a tree.
#pragma once

#include <cstdint>
#include <span>

namespace keel::models {

enum class TreeFault {
  kNone,   // one token hangs from the root, and all others from it
  kRoots,  // several tokens hang from the root
  kCycle,  // some token's heads never lead to the root
};

// heads[i] is the head of token i + 1: 0, the root, or a token of the sentence. If a sentence has a
// cycle and several roots, the fault is the cycle.
TreeFault tree_fault(std::span<const std::int32_t> heads);

}  // namespace keel::models

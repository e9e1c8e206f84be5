#include "models/dependency_parser/tree.h"

#include <algorithm>
#include <vector>

namespace keel::models {

TreeFault tree_fault(std::span<const std::int32_t> heads) {
  // The first token from which a node was reached; the root counts as reached from itself.
  constexpr std::int32_t kNotYet = -1;
  std::vector<std::int32_t> reached_from(heads.size() + 1, kNotYet);
  reached_from[0] = 0;
  for (std::int32_t token = 1; token <= std::ssize(heads); ++token) {
    std::int32_t node = token;
    while (reached_from[std::size_t(node)] == kNotYet) {
      reached_from[std::size_t(node)] = token;
      node = heads[std::size_t(node - 1)];
    }
    if (node != 0 && reached_from[std::size_t(node)] == token) return TreeFault::kCycle;
  }
  return std::ranges::count(heads, 0) > 1 ? TreeFault::kRoots : TreeFault::kNone;
}

}  // namespace keel::models

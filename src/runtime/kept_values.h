// The values that an instance of a graph keeps while other instances run in the same arena.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/passes/memory_plan.h"

namespace keel {

// Instances of a graph that run in parts (src/ops/shard_parts.h) may take turns in one arena: after
// a part of its own, each copies what its later parts read to memory that nobody else has, and
// copies it back before them. What is read from a collective is the same for all instances, and
// they keep none of it.
struct KeptValues {
  struct Copy {
    std::int64_t arena = 0, kept = 0, bytes = 0;  // two offsets, and the length
  };

  // By part: the copies after it, the copies before it, and the collectives that it reads.
  std::vector<std::vector<Copy>> saved, restored;
  std::vector<std::vector<std::int64_t>> collectives;
  std::int64_t bytes = 0;  // of what one instance keeps
};

KeptValues find_kept_values(const Graph& graph, const MemoryPlan& plan,
                            const std::function<std::int64_t(DType)>& element_bytes);

}  // namespace keel

// The memory that compiled programs hold, in bytes. Only the containers' own sizes are counted, not
// the allocator's overhead, so the numbers are the same in every run.
#pragma once

#include <cstdint>

#include "src/graph/graph.h"
#include "src/runtime/backend.h"

namespace keel {

struct ProgramMemory {
  std::int64_t graph = 0;    // nodes, their names and types, and constants as they were given
  std::int64_t plan = 0;     // where every value lies
  std::int64_t kernels = 0;  // kernels, the addresses bound to them, and what Prepared::holds says
  std::int64_t constants = 0;  // in the backend's memory
  std::int64_t arena = 0;      // bytes needed in the arena, which programs may share

  // The bytes that no other program shares.
  std::int64_t own() const { return graph + plan + kernels + constants; }
};

// Adds up several programs. Their arenas take turns in one block, so only the largest arena counts.
ProgramMemory& operator+=(ProgramMemory& sum, const ProgramMemory& program);

std::int64_t bytes_of(const Graph& graph);
std::int64_t bytes_of(const Binding& binding);

}  // namespace keel

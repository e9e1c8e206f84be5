// Where every value of a graph lives: persistent leaves in their own memory, everything else at
// fixed offsets of one arena, shared by values whose lifetimes do not meet.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "src/graph/tables.h"

namespace keel {

struct Location {
  enum Kind {
    kAbsent,    // an output that does not apply
    kArena,     // `offset` bytes into the arena
    kLeaf,      // `offset` bytes into the memory of parameter or state node `leaf`
    kConstant,  // `offset` bytes into the value of constant node `leaf`
  };
  Kind kind = kAbsent;
  std::int64_t offset = 0;  // 0 but for what lies in the arena or is a part of something
  int leaf = -1;
};

struct MemoryPlan {
  PerValue<Location> locations;
  PerNode<std::int64_t> workspace_offsets;  // -1 without a workspace
  std::vector<Update> copies;               // updates that are not already in place
  std::int64_t arena_bytes = 0;
  std::int64_t live_bytes = 0;   // the most bytes alive at once: no plan can need less
  std::int64_t total_bytes = 0;  // what it would take if nothing were shared
  int in_place = 0;              // outputs written over an input, by claim of their op

  const Location& at(Value v) const { return locations[v]; }
};

struct PlanOptions {
  // Bytes a backend stores one element of a type in; the default is the type's own size.
  std::function<std::int64_t(DType)> element_bytes = {};
  std::span<const std::int64_t> workspaces = {};  // bytes of each node; empty: none
  bool guarded = false;  // updates must be left out when a guard is not finite
};

// Lifetimes follow the node order. Inputs and outputs of the graph live through the whole run.
// Largest first, each value takes the lowest offset that is free while it lives. Takes O(n log n)
// steps for n nodes unless memory is left in very many small pieces.
MemoryPlan plan_memory(const Graph& graph, const PlanOptions& options = {});

}  // namespace keel

// Where every value of a graph is stored: persistent leaves in their own memory, everything else at
// fixed offsets in one arena, which values with disjoint lifetimes share.
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
  std::int64_t offset = 0;  // 0 except in the arena or for a part of something
  int leaf = -1;
};

struct MemoryPlan {
  PerValue<Location> locations;
  PerNode<std::int64_t> workspace_offsets;  // -1 without a workspace
  std::vector<Update> copies;               // updates that are not already in place
  std::int64_t arena_bytes = 0;
  std::int64_t live_bytes = 0;   // the most bytes alive at once: a lower bound of every plan
  std::int64_t total_bytes = 0;  // the bytes needed if nothing were shared
  int in_place = 0;              // outputs written over an input, by claim of their op

  const Location& at(Value v) const { return locations[v]; }
};

// Nodes first to last, all of which run at once.
struct NodeSpan {
  int first, last;
};

struct PlanOptions {
  // Bytes in which a backend stores one element of a type; the default is the type's own size.
  std::function<std::int64_t(DType)> element_bytes = {};
  std::span<const std::int64_t> workspaces = {};  // bytes of each node; empty: none
  bool guarded = false;  // updates must be skipped when a guard is not finite
  // In ascending order. What is alive at one node of a span lives from its first to its last.
  std::span<const NodeSpan> at_once = {};
};

// Lifetimes follow the node order. Inputs and outputs of the graph live through the whole run.
// Largest first, each value takes the lowest offset that is free during its lifetime. Takes
// O(n log n) steps for n nodes unless free memory is split into very many small pieces.
MemoryPlan plan_memory(const Graph& graph, const PlanOptions& options = {});

}  // namespace keel

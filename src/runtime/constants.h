// The constants of a program, in one block of a backend's memory.
#pragma once

#include <memory>

#include "src/graph/tables.h"
#include "src/runtime/backend.h"

namespace keel {

// Constants are stored in the backend's storage types. Constants with equal bytes share storage: a
// long graph repeats the same few scalars thousands of times.
class Constants {
 public:
  Constants(Backend& backend, const Graph& graph);

  // The memory block; null when the graph has no constants.
  Memory* memory() const { return memory_.get(); }
  // The offset in bytes at which a constant node's value begins in the block.
  std::int64_t offset(int node) const { return offsets_[node]; }

 private:
  std::unique_ptr<Memory> memory_;
  PerNode<std::int64_t> offsets_;
};

}  // namespace keel

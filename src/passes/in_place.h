// Finds the values that share one buffer: views share with their source, and an output may be
// written over an input if the op claims that this is safe.
#pragma once

#include <vector>

#include "src/graph/tables.h"

namespace keel {

struct Buffer {
  enum Kind { kAbsent, kTemporary, kLeaf, kConstant };
  Kind kind = kTemporary;
  int leaf = -1;              // node of a leaf or constant
  int first = 0, last = 0;    // first node that writes and last node that reads it
  std::int64_t elements = 0;  // of the largest member
  DType dtype = DType::kF32;
};

struct BufferAssignment {
  std::vector<Buffer> buffers;
  PerValue<int> of;               // index of the buffer
  PerValue<std::int64_t> offset;  // the number of the buffer's elements before the value
  std::vector<Update> copies;     // updates whose next value is not in the leaf's own buffer
  int in_place = 0;
};

// `guarded`: only ops that keep their outputs in a diverged step may overwrite a leaf.
BufferAssignment assign_buffers(const Graph& graph, bool guarded);

}  // namespace keel

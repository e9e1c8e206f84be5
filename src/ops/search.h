// Ops for step-by-step search over a sequence: the best candidates of a row, and a memory of the
// results of earlier steps. None has a backward.
//
// top_k: the k largest elements of every row, largest first. Among equal elements the lower
//   index comes first. NaN comes before every number, so that a row with NaN is noticed.
//   x (rows, width) floating, 1 <= k <= width
//   outputs: values (rows, k) like x;  indices (rows, k) i32
//
// scatter: writes the result of a step into the memory of the results of earlier steps.
//   y[r, t] = x[r, 0] and y[r, i] = memory[r, i] for i != t
//   memory (rows, length, width)   x (rows, 1, width) of the same type   t () i32   y like memory
//   A t outside of [0, length) makes element 0 NaN, so that the run stops with the node's name.
//   in place: y over memory.
#pragma once

#include "src/graph/graph.h"

namespace keel {

// Inputs and outputs have these places.
struct ScatterInput {
  enum Place : int { kMemory, kX, kT };
};
struct TopKOutput {
  enum Place : int { kValues, kIndices };
};

struct TopKAttrs {
  std::int64_t k = 1;
  static constexpr auto fields() { return std::tuple{field("k", &TopKAttrs::k)}; }
};

// Whether element a at index i comes before element b at index j.
template <class T>
constexpr bool stands_before(T a, std::int64_t i, T b, std::int64_t j) {
  const bool a_is_nan = a != a, b_is_nan = b != b;
  if (a_is_nan || b_is_nan) return a_is_nan && (!b_is_nan || i < j);
  return a > b || (a == b && i < j);
}

// The sizes of scatter.
struct MemorySizes {
  std::int64_t rows, length, width;
};
inline MemorySizes memory_sizes(const Shape& memory) { return {memory[0], memory[1], memory[2]}; }

extern const OpInfo kTopK, kScatter;

namespace ops {

struct Ranked {
  Value values, indices;
};
Ranked top_k(Graph& g, Value x, std::int64_t k);

Value scatter(Graph& g, Value memory, Value x, Value t);

// y[i] = x[rows[i]] for x (n, ...) and rows (m) i32: selects the rows that a search continues with.
// A number outside [0, n) gives a row of NaN.
Value take_rows(Graph& g, Value x, Value rows);

}  // namespace ops
}  // namespace keel

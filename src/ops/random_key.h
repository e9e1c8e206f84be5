// The inputs and stream shared by ops that draw random numbers. A number depends on (seed, stream,
// update, row of the whole update, element within the row). Four micro-batches of 16 rows thus draw
// the same numbers as one of 64, and padding a row does not change the numbers of its real part.
#pragma once

#include "src/core/rng.h"
#include "src/graph/graph.h"

namespace keel {

// Two inputs of such an op, both () i32.
struct RandomKey {
  Value step;       // the number of the update
  Value first_row;  // the number, within the batch of the whole update, of this batch's first row
};

// The stream of an op with attributes `seed` and `stream` in one update.
template <class Attrs>
constexpr Philox random_stream(const Attrs& attrs, std::int32_t step) {
  return {static_cast<std::uint64_t>(attrs.seed), static_cast<std::uint32_t>(attrs.stream),
          static_cast<std::uint32_t>(step)};
}

// How random numbers see a tensor: axis 0 counts the rows of the batch, and the other axes are the
// elements of one row. A scalar is one row with one element.
struct SampledRows {
  std::int64_t rows, width;
};
SampledRows sampled_rows(const Shape& x);

// Throws Error{kUsage} unless inputs `step` and `first_row` are () i32.
void expect_random_key(const InferContext& c, int step, int first_row);
// Throws Error{kUsage} unless `elements` elements that draw `each` numbers fit a row.
void expect_row_numbers(const InferContext& c, std::int64_t elements, std::int64_t each);

}  // namespace keel

// What the norms of columns, with a row mask or without, expect of their inputs.
#pragma once

#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"

namespace keel {

// The sizes of x; `mask` is the place of its row mask. Throws unless x is floating and (rows,
// channels) or (n, channels, h, w) with at least one element a feature, and the mask is absent or,
// for tokens, u8 (rows).
inline ColumnSizes expect_columns(const InferContext& c, int mask) {
  const Shape& x = c.shape(NormInput::kX);
  c.expect_floating(NormInput::kX, "x");
  c.expect(x.rank() == 2 || x.rank() == 4, "x", "(rows, channels) or (n, channels, h, w)",
           x.text());
  const ColumnSizes sizes = column_sizes(x);
  c.expect(sizes.count() >= 1, "x", "at least one element a feature", x.text());
  if (!c.has(mask)) return sizes;
  c.expect(x.rank() == 2, "mask", "none for images", c.shape(mask).text());
  c.expect_shape(mask, "mask", Shape{sizes.outer});
  c.expect_dtype(mask, "mask", DType::kU8);
  return sizes;
}

// Throws in the same cases, and for eps < 0.
inline ColumnSizes expect_columns(const InferContext& c, int mask, double eps) {
  const ColumnSizes sizes = expect_columns(c, mask);
  expect_statistic(c, {eps}, sizes.count());
  return sizes;
}

// Throws unless an attribute that is a share of something is one.
inline void expect_in_unit_interval(const InferContext& c, std::string_view what, double value) {
  c.expect(value >= 0 && value <= 1, what, "in [0, 1]", fmt::format("{}", value));
}

}  // namespace keel

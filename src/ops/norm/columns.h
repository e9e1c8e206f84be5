// What column norms with an optional row mask ask of their inputs.
#pragma once

#include "src/ops/norm/batch_norm.h"

namespace keel {

// The sizes of x (input 0). Throws unless x is floating, (rows, channels) or (n, channels, h, w),
// with at least one element a feature.
inline ColumnSizes expect_columns(const InferContext& c) {
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(x.rank() == 2 || x.rank() == 4, "x", "(rows, channels) or (n, channels, h, w)",
           x.text());
  const ColumnSizes sizes = column_sizes(x);
  c.expect(sizes.count() >= 1, "x", "at least one element a feature", x.text());
  return sizes;
}

// Input i is absent, or a mask of the rows of tokens: u8 (rows), 1 = kept.
inline void expect_mask(const InferContext& c, int i) {
  if (!c.has(i)) return;
  c.expect(c.shape(0).rank() == 2, "mask", "none for images", c.shape(i).text());
  c.expect_shape(i, "mask", Shape{c.shape(0)[0]});
  c.expect_dtype(i, "mask", DType::kU8);
}

inline void expect_step(const InferContext& c, int i) {
  c.expect_shape(i, "step", {});
  c.expect_dtype(i, "step", DType::kI32);
}

}  // namespace keel

// What row norms share when their types are inferred: a row is the last `axes` axes of x.
#pragma once

#include "src/ops/norm/layer_norm.h"

namespace keel {

// The shape of one row, and so of a gain or bias with an element for each of its elements.
inline Shape row_shape(const Shape& x, std::int64_t axes) {
  return Shape(x.sizes().last(std::size_t(axes)));
}

// Throws unless x (input 0) is floating, has `axes` >= 1 axes to normalize over, and at least one
// element a row.
inline RowSizes expect_rows(const InferContext& c, std::int64_t axes) {
  const Shape& x = c.shape(0);
  c.expect_floating(0, "x");
  c.expect(axes >= 1 && axes <= x.rank(), "axes", "1 to the rank of " + x.text(),
           fmt::format("{}", axes));
  const RowSizes sizes = row_sizes(x, axes);
  c.expect(sizes.width >= 1, "x", "at least one element a row", x.text());
  return sizes;
}

}  // namespace keel

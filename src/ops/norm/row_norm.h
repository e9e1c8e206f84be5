// Checks of x for row norms: a row is the last `axes` axes of x.
#pragma once

#include "src/ops/norm/norm.h"
#include "src/ops/norm/sizes.h"

namespace keel {

// Throws unless x is floating, has `axes` >= 1 axes to normalize over, and at least one element a
// row.
inline RowSizes expect_rows(const InferContext& c, std::int64_t axes) {
  const Shape& x = c.shape(NormInput::kX);
  c.expect_floating(NormInput::kX, "x");
  c.expect(axes >= 1 && axes <= x.rank(), "axes", "1 to the rank of " + x.text(),
           fmt::format("{}", axes));
  const RowSizes sizes = row_sizes(x, axes);
  c.expect(sizes.width >= 1, "x", "at least one element a row", x.text());
  return sizes;
}

}  // namespace keel

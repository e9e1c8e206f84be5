// The option of norms whose parameters lie along a row: how many trailing axes of x make one.
#pragma once

#include "frontend/nn/norm_table.h"

namespace keel::nn {

// As many as `asked`, or for 0 all but the first of images (n, c, h, w) and else the last one.
inline std::int64_t row_axes(const Graph& g, Value x, std::int64_t asked) {
  const Shape& shape = g.shape(x);
  const std::int64_t axes = asked > 0 ? asked : shape.rank() == 4 ? 3 : 1;
  check(axes <= shape.rank(), ErrorKind::kUsage, "norm: axes: expected at most those of {}, got {}",
        shape.text(), axes);
  return axes;
}

struct RowOptions {
  std::int64_t axes = 0;  // as row_axes takes it

  void validate(const OptionRanges& ranges) const {
    ranges.at_least<std::int64_t>(0, "axes", axes);
  }
};

}  // namespace keel::nn

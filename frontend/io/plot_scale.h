// Maps values to places on an axis.
#pragma once

#include <cmath>

namespace keel::io {

// The values from low to high; a new range is empty.
struct Range {
  double low = INFINITY, high = -INFINITY;

  bool empty() const { return low > high; }
  void include(double value);
};

// The range with a margin at both ends: a part `margin` of it, on a logarithmic axis of its
// logarithm. An empty range becomes [0, 1] or [0.1, 1], nearly a single value is widened.
Range with_margin(Range range, double margin, bool log);

// Maps values to pixels, from `first` at the low end to `last` at the high end.
struct Scale {
  Range range;
  bool log = false;
  double first = 0, last = 0;

  double operator()(double value) const;
};

// Whether a value has a place on the axis: it must be finite, not beyond 1e100 and, on a
// logarithmic axis, not below 1e-100.
bool can_show(double value, bool log);

}  // namespace keel::io

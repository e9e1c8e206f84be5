// From values to places on an axis.
#pragma once

#include <cmath>

namespace keel::io {

// The values from low to high; empty as it is made.
struct Range {
  double low = INFINITY, high = -INFINITY;

  bool empty() const { return low > high; }
  void include(double value);
};

// The range with air at both ends: a part `margin` of it, on a logarithmic axis of its logarithm.
// An empty range becomes [0, 1] or [0.1, 1], and one of nearly a single value is opened.
Range with_margin(Range range, double margin, bool log);

// Values to pixels, from `first` at the low end to `last` at the high end.
struct Scale {
  Range range;
  bool log = false;
  double first = 0, last = 0;

  double operator()(double value) const;
};

// Whether a value has a place: not one that is not finite or beyond 1e100, nor, on a logarithmic
// axis, below 1e-100.
bool can_show(double value, bool log);

}  // namespace keel::io

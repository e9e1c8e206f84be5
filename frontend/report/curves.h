// Curves of several seeds as one line with a range.
#pragma once

#include <span>

#include "frontend/report/run.h"

namespace keel::report {

// Points of one run, x increasing, every y finite.
struct Line {
  std::vector<double> x, y;
};

// At every x that any line has: the median, the least and the largest value of the lines that
// reach it, taken between their points along straight lines.
struct Band {
  std::vector<double> x, median, low, high;
};

// What quantities are drawn along.
enum class Axis { kEpoch, kStep };

// A curve's points, without those that are not finite; along epochs none of a run without a
// completed one. More than `most` points are replaced by means of equally many neighbours.
Line line_of(const Run& run, const Curve& curve, Axis axis, std::size_t most = 400);

// The same for a logarithmic axis: without what is not above 0, neighbours being those in one of
// `most` equal parts of the axis, so that the first updates stay apart.
Line log_line_of(const Run& run, const Curve& curve, Axis axis, std::size_t most = 400);

Band band_of(std::span<const Line> lines);

}  // namespace keel::report

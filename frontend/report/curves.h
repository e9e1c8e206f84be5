// Curves of several seeds, summarized as one line with a range.
#pragma once

#include <span>

#include "frontend/report/run.h"

namespace keel::report {

// Points of one run, x increasing, every y finite.
struct Line {
  std::vector<double> x, y;
};

// At every x of any line: the median, the least and the largest value of the lines that reach it,
// interpolated linearly between their points.
struct Band {
  std::vector<double> x, median, low, high;
};

// The horizontal axis of curves.
enum class Axis { kEpoch, kStep };

// A curve's points, except those that are not finite; along epochs a run without a completed one
// has none. More than `most` points are replaced by means of equally many neighbours.
Line line_of(const Run& run, const Curve& curve, Axis axis, std::size_t most = 400);

// The same for a logarithmic axis: only values above 0, and the neighbours are the points in one of
// `most` equal parts of the axis, so that the first updates stay apart.
Line log_line_of(const Run& run, const Curve& curve, Axis axis, std::size_t most = 400);

Band band_of(std::span<const Line> lines);

}  // namespace keel::report

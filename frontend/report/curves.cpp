#include "frontend/report/curves.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "frontend/report/spread.h"

namespace keel::report {
namespace {

// The means of the points [begin, end) of a line, put after those of another.
void append_mean(Line& result, const Line& line, std::size_t begin, std::size_t end) {
  const auto mean = [&](const std::vector<double>& values) {
    const auto first = values.begin() + std::ptrdiff_t(begin);
    return std::accumulate(first, values.begin() + std::ptrdiff_t(end), 0.0) / double(end - begin);
  };
  result.x.push_back(mean(line.x));
  result.y.push_back(mean(line.y));
}

Line thinned(const Line& line, std::size_t most) {
  if (line.x.size() <= most) return line;
  const std::size_t together = (line.x.size() + most - 1) / most;
  Line result;
  for (std::size_t i = 0; i < line.x.size(); i += together) {
    append_mean(result, line, i, std::min(i + together, line.x.size()));
  }
  return result;
}

// The points of x above 0, with means for those in one of `most` equal parts of log x.
Line thinned_by_logarithm(const Line& line, std::size_t most) {
  const auto first = std::size_t(std::ranges::upper_bound(line.x, 0.0) - line.x.begin());
  Line result;
  const auto part_of = [&](std::size_t i) {
    return std::floor(double(most) * std::log(line.x[i] / line.x[first]) /
                      std::log(line.x.back() / line.x[first]));
  };
  for (std::size_t begin = first, end = first; begin < line.x.size(); begin = end) {
    while (end < line.x.size() && (end == begin || part_of(end) == part_of(begin))) ++end;
    append_mean(result, line, begin, end);
  }
  return result;
}

// The line's value at x; nothing outside of its points.
std::optional<double> value_at(const Line& line, double x) {
  if (line.x.empty() || x < line.x.front() || x > line.x.back()) return std::nullopt;
  const auto right = std::size_t(std::ranges::lower_bound(line.x, x) - line.x.begin());
  if (line.x[right] == x) return line.y[right];
  const double part = (x - line.x[right - 1]) / (line.x[right] - line.x[right - 1]);
  return line.y[right - 1] + part * (line.y[right] - line.y[right - 1]);
}

}  // namespace

Line line_of(const Run& run, const Curve& curve, Axis axis, std::size_t most) {
  Line line;
  for (std::size_t i = 0; i < curve.step.size(); ++i) {
    const auto x = axis == Axis::kEpoch ? epoch_at(run, curve.step[i]) : curve.step[i];
    if (!x || !std::isfinite(curve.value[i])) continue;
    // If a step is written down twice, the last value counts.
    if (!line.x.empty() && *x <= line.x.back()) {
      line.y.back() = curve.value[i];
      continue;
    }
    line.x.push_back(*x);
    line.y.push_back(curve.value[i]);
  }
  return thinned(line, most);
}

Line log_line_of(const Run& run, const Curve& curve, Axis axis, std::size_t most) {
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  return thinned_by_logarithm(line_of(run, curve, axis, kAll), most);
}

Band band_of(std::span<const Line> lines) {
  std::vector<double> places;
  for (const Line& line : lines) places.insert(places.end(), line.x.begin(), line.x.end());
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  Band band;
  for (const double x : places) {
    std::vector<double> values;
    for (const Line& line : lines) {
      if (const auto y = value_at(line, x)) values.push_back(*y);
    }
    band.x.push_back(x);
    band.median.push_back(median_of(values));
    band.low.push_back(std::ranges::min(values));
    band.high.push_back(std::ranges::max(values));
  }
  return band;
}

}  // namespace keel::report

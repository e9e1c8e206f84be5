#include "frontend/report/curves.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "frontend/report/spread.h"

namespace keel::report {
namespace {

Line thinned(const Line& line, std::size_t most) {
  if (line.x.size() <= most) return line;
  const std::size_t together = (line.x.size() + most - 1) / most;
  Line result;
  for (std::size_t i = 0; i < line.x.size(); i += together) {
    const std::size_t count = std::min(together, line.x.size() - i);
    const auto mean = [&](const std::vector<double>& values) {
      const auto first = values.begin() + std::ptrdiff_t(i);
      return std::accumulate(first, first + std::ptrdiff_t(count), 0.0) / double(count);
    };
    result.x.push_back(mean(line.x));
    result.y.push_back(mean(line.y));
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
    // What is written down twice of one step counts as said last.
    if (!line.x.empty() && *x <= line.x.back()) {
      line.y.back() = curve.value[i];
      continue;
    }
    line.x.push_back(*x);
    line.y.push_back(curve.value[i]);
  }
  return thinned(line, most);
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

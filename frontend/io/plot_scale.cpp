#include "frontend/io/plot_scale.h"

#include <algorithm>

namespace keel::io {

void Range::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

Range with_margin(Range range, double margin, bool log) {
  if (range.empty()) range = log ? Range{0.1, 1} : Range{0, 1};
  const double largest = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high - range.low <= 1e-9 * largest) {
    const double extra = largest == 0 ? 1 : largest / 2;
    return {range.low - extra, range.high + extra};
  }
  if (log) {
    const double factor = std::pow(range.high / range.low, margin);
    return {range.low / factor, range.high * factor};
  }
  const double extra = margin * (range.high - range.low);
  return {range.low - extra, range.high + extra};
}

double Scale::operator()(double value) const {
  const auto at = [&](double v) { return log ? std::log10(v) : v; };
  const double part = (at(value) - at(range.low)) / (at(range.high) - at(range.low));
  return first + part * (last - first);
}

bool can_show(double value, bool log) {
  constexpr double kLimit = 1e100;  // ratios and differences of such values still are finite
  return std::abs(value) < kLimit && (!log || value > 1 / kLimit);
}

}  // namespace keel::io

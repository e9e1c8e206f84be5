// Summarizes the values of several seeds.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace keel::report {

// The deviation is the root of the sum of squares over n - 1; a single value has none.
struct Spread {
  double mean = 0;
  std::optional<double> deviation = {};
  std::int64_t n = 0;
};

Spread spread_of(std::span<const double> values);

// The middle value, or the mean of the two in the middle. Throws Error{kUsage} without values.
double median_of(std::vector<double> values);

// "2.50 +- 0.35", "2.50" for one value, "-" for none. In files `sign` may be a real one.
std::string text(const Spread& spread, int digits, const std::string& sign = "+-");

// The number of digits after the point: two for a share in percent, else as many as leave four
// significant digits in a number of this size.
int digits_for(double size, const std::string& unit);

}  // namespace keel::report

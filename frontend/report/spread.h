// Values of several seeds in few numbers.
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

// "2.50 +- 0.35", "2.50" of one value, "-" of none. In files the sign may be a real one.
std::string text(const Spread& spread, int digits, const std::string& sign = "+-");

// How many digits to show after the point: two of a share in percent, else as many as leave a
// number of this size four that count.
int digits_for(double size, const std::string& unit);

}  // namespace keel::report

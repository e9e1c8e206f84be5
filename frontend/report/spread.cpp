#include "frontend/report/spread.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/core/error.h"

namespace keel::report {

Spread spread_of(std::span<const double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  Spread spread{.mean = mean, .n = std::ssize(values)};
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (n - 1));
  return spread;
}

double median_of(std::vector<double> values) {
  check(!values.empty(), ErrorKind::kUsage, "[report] median: expected values, got none");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  if (values.size() % 2 == 1) return values[half];
  return values[half - 1] + (values[half] - values[half - 1]) / 2;
}

std::string text(const Spread& spread, int digits, const std::string& sign) {
  if (spread.n == 0) return "-";
  const std::string mean = fmt::format("{:.{}f}", spread.mean, digits);
  if (!spread.deviation) return mean;
  return fmt::format("{} {} {:.{}f}", mean, sign, *spread.deviation, digits);
}

int digits_for(double size, const std::string& unit) {
  if (unit == "%") return 2;
  if (!std::isfinite(size) || size == 0) return 3;
  return std::clamp(3 - static_cast<int>(std::floor(std::log10(std::abs(size)))), 0, 8);
}

}  // namespace keel::report

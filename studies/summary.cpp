#include "studies/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/core/error.h"

namespace keel::study {

double quantile(std::vector<double> values, double q) {
  check(!values.empty(), ErrorKind::kUsage, "[quantile] values: expected some, got none");
  std::ranges::sort(values);
  const double place = q * double(values.size() - 1);
  const auto below = std::size_t(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - double(below));
}

std::vector<double> differences(std::span<const double> a, std::span<const double> b) {
  std::vector<double> result(a.size());
  std::ranges::transform(a, b, result.begin(), std::minus<double>());
  return result;
}

std::string joined(std::span<const double> values, int digits) {
  std::string text;
  for (double value : values)
    text += fmt::format("{}{:.{}f}", text.empty() ? "" : "/", value, digits);
  return text;
}

}  // namespace keel::study

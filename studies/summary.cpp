#include "studies/summary.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

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

double mean_of(std::span<const double> values) {
  check(!values.empty(), ErrorKind::kUsage, "[mean_of] values: expected some, got none");
  return std::reduce(values.begin(), values.end()) / double(values.size());
}

double mean_at_least(std::span<const double> values) {
  // By degrees of freedom, from 1 on; beyond the last it is smaller still.
  constexpr double kStudent[] = {6.314, 2.920, 2.353, 2.132, 2.015,
                                 1.943, 1.895, 1.860, 1.833, 1.812};
  check(values.size() > 1, ErrorKind::kUsage,
        "[mean_at_least] values: expected two or more, got {}", values.size());
  const double mean = mean_of(values), n = double(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double t = kStudent[std::min(values.size() - 2, std::size(kStudent) - 1)];
  return mean - t * std::sqrt(squares / (n - 1) / n);
}

std::string name_of_norm(const std::string& norm) { return norm.substr(0, norm.find('{')); }

std::string joined(std::span<const double> values, int digits) {
  std::string text;
  for (double value : values)
    text += fmt::format("{}{:.{}f}", text.empty() ? "" : "/", value, digits);
  return text;
}

}  // namespace keel::study

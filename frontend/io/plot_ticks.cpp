// Round numbers within a range, and their shortest texts.
#include "frontend/io/plot_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace keel::io {
namespace {

struct Unit {
  double size;
  const char* suffix;
};

// Steps are counted in thousands and millions; still larger numbers get an exponent.
Unit unit_for(double largest) {
  if (largest >= 1e4 && largest < 1e6) return {1e3, "k"};
  if (largest >= 1e6 && largest < 1e10) return {1e6, "M"};
  return {1, ""};
}

}  // namespace

std::vector<double> linear_ticks(double low, double high, int wanted) {
  const double rough = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;  // in [1, 10)
  const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  const double slack = 1e-9;  // of a step: the ends of a range are often ticks themselves
  std::vector<double> ticks;
  for (double i = std::ceil(low / step - slack); i <= std::floor(high / step + slack); ++i) {
    ticks.push_back(i * step + 0.0);  // + 0.0 makes -0 into 0
  }
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const double first = std::floor(std::log10(low)), last = std::ceil(std::log10(high));
  const double decades = std::log10(high / low);
  const double stride = std::max(1.0, std::ceil(decades / 8));
  std::vector<double> ticks;
  for (double power = std::floor(first / stride) * stride; power <= last; power += stride) {
    for (double lead : {1, 2, 5}) {
      const double value = lead * std::pow(10, power);
      if (value >= low && value <= high && (lead == 1 || decades <= 3)) ticks.push_back(value);
    }
  }
  return ticks.size() >= 3 ? ticks : linear_ticks(low, high, 6);
}

std::vector<std::string> tick_labels(const std::vector<double>& ticks) {
  double least = INFINITY, largest = 0, step = INFINITY;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    largest = std::max(largest, std::abs(ticks[i]));
    if (ticks[i] != 0) least = std::min(least, std::abs(ticks[i]));
    if (i > 0) step = std::min(step, ticks[i] - ticks[i - 1]);
  }
  // Over decades each tick has a unit of its own.
  const bool is_wide = largest >= 1000 * least;
  // As many digits as it takes to tell neighbours apart.
  const int digits = std::isfinite(step) ? static_cast<int>(std::log10(largest / step)) + 2 : 6;
  std::vector<std::string> labels;
  for (double tick : ticks) {
    const Unit unit = unit_for(is_wide ? std::abs(tick) : largest);
    std::string label = fmt::format("{:.{}g}", tick / unit.size, std::max(digits, 4));
    if (const std::size_t at = label.find("e-0"); at != std::string::npos) label.erase(at + 2, 1);
    if (tick != 0) label += unit.suffix;
    labels.push_back(std::move(label));
  }
  return labels;
}

}  // namespace keel::io

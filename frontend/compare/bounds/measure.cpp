#include "frontend/compare/bounds/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "frontend/compare/bounds/scale_fit.h"

namespace keel::compare {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

// |got - expected|, where a value that no float holds may be met by the nearest ones, and one that
// `allowed` takes beyond the floats by infinity.
double distance(double got, double expected, double allowed) {
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) == std::isnan(expected) ? 0 : INFINITY;
  }
  const double along = got * std::copysign(1, expected);
  if (std::abs(expected) > kLargest) {
    if (along >= kLargest) return 0;
    return std::isfinite(expected) ? kLargest - along : INFINITY;
  }
  const bool may_overflow = std::isfinite(allowed) && std::abs(expected) + allowed >= kLargest;
  if (std::isinf(got) && along > 0 && may_overflow) return 0;
  return got == expected ? 0 : std::abs(got - expected);
}

double share(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : INFINITY;
}

}  // namespace

double ulp_of(double value) {
  const double size = std::max(std::abs(value), double(std::numeric_limits<float>::min()));
  return std::isfinite(size) ? std::ldexp(1.0, std::ilogb(size) - 23) : INFINITY;
}

void Measure::add(int port, const Tensor& got, const Tensor& expected, const Tensor* bound) {
  check(got.shape() == expected.shape() && (!bound || bound->shape() == expected.shape()),
        ErrorKind::kUsage, "measure: expected {}, got {}", expected.shape().text(),
        got.shape().text());
  const bool compared = bound != nullptr && is_floating(expected.dtype());
  const bool exact = bound != nullptr && !compared;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double allowed = compared ? bound->at(i) : exact ? 0 : INFINITY;
    if (compared && !std::isfinite(allowed) && std::abs(expected.at(i)) <= kLargest) {
      errors_.uncompared += got.at(i) == expected.at(i) ? 0 : 1;
    }
    take({port, i, expected.at(i), got.at(i), allowed});
  }
  if (compared) take_sensitivity(expected, *bound);
}

void Measure::take_sensitivity(const Tensor& expected, const Tensor& bound) {
  std::vector<double> allowed;
  double squares = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double y = expected.at(i);
    if (!std::isfinite(y) || std::isnan(bound.at(i))) continue;
    allowed.push_back(bound.at(i));
    squares += y * y;
  }
  if (!(squares > 0)) return;  // a share of nothing
  const auto middle = allowed.begin() + std::ssize(allowed) / 2;
  std::ranges::nth_element(allowed, middle);
  errors_.sensitivity =
      std::max(errors_.sensitivity, *middle / std::sqrt(squares / double(allowed.size())));
}

void Measure::add_strict(const Tensor& got, const Tensor& expected, const Tensor& usual,
                         const Tensor& deviation) {
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double allowed = usual.at(i);
    if (!std::isfinite(allowed)) continue;
    const double of_usual = share(distance(got.at(i), expected.at(i), allowed), allowed);
    errors_.of_usual = std::max(errors_.of_usual, of_usual);
  }
  errors_.scale = std::max(errors_.scale, scale_fit(got, expected, deviation));
}

void Measure::take(const Element& element) {
  const double error = distance(element.got, element.expected, element.bound);
  const double size = std::abs(element.expected);
  errors_.absolute = std::max(errors_.absolute, error);
  if (size > 0) errors_.relative = std::max(errors_.relative, error / size);
  errors_.ulps = std::max(errors_.ulps, error / ulp_of(size));
  // Beyond the floats and at NaN what matters is that both are there, whatever the bound.
  const bool has_bound = std::isfinite(element.bound) || !(std::abs(element.expected) <= kLargest);
  const double of_bound = has_bound ? share(error, element.bound) : 0;
  if (of_bound > errors_.of_bound || (errors_.worst.expected == 0 && errors_.of_bound == 0)) {
    errors_.of_bound = std::max(errors_.of_bound, of_bound);
    errors_.worst = element;
  }
  if (!std::isfinite(element.got) || !std::isfinite(element.expected)) {
    if (error > 0) squares_ = INFINITY;
    return;
  }
  squares_ += error * error;
  expected_squares_ += size * size;
  got_squares_ += element.got * element.got;
  product_ += element.got * element.expected;
}

Errors Measure::result() const {
  Errors result = errors_;
  if (squares_ > 0) {
    result.nmse = expected_squares_ > 0 ? squares_ / expected_squares_ : INFINITY;
    const double sizes = std::sqrt(expected_squares_) * std::sqrt(got_squares_);
    result.cosine = sizes > 0 ? std::clamp(product_ / sizes, -1.0, 1.0) : 0;
  }
  return result;
}

}  // namespace keel::compare

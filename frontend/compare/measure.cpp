#include "frontend/compare/measure.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace keel::compare {
namespace {

// |got - expected|, where a value that no float holds may be met by the nearest ones.
double distance(double got, double expected) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  if (std::isnan(got) || std::isnan(expected)) {
    return std::isnan(got) == std::isnan(expected) ? 0 : INFINITY;
  }
  if (std::abs(expected) > kLargest) {
    return got * std::copysign(1, expected) >= kLargest ? 0 : INFINITY;
  }
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
  const bool judged = bound != nullptr && is_floating(expected.dtype());
  const bool exact = bound != nullptr && !judged;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double allowed = judged ? bound->at(i) : exact ? 0 : INFINITY;
    take({port, i, expected.at(i), got.at(i), allowed});
  }
}

void Measure::take(const Element& element) {
  const double error = distance(element.got, element.expected);
  const double size = std::abs(element.expected);
  errors_.absolute = std::max(errors_.absolute, error);
  if (size > 0) errors_.relative = std::max(errors_.relative, error / size);
  errors_.ulps = std::max(errors_.ulps, error / ulp_of(size));
  const double of_bound =
      std::isinf(element.bound) && std::isfinite(error) ? 0 : share(error, element.bound);
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

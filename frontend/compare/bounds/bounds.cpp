#include "frontend/compare/bounds/bounds.h"

#include <algorithm>
#include <cmath>

#include "src/core/error.h"

namespace keel::compare {

double largest_error(const Tensor& got, const Tensor& expected) {
  check(got.shape() == expected.shape(), ErrorKind::kUsage, "largest_error: expected {}, got {}",
        expected.shape().text(), got.shape().text());
  double largest = 0;
  for (std::int64_t i = 0; i < got.elements(); ++i) {
    const double a = got.at(i), b = expected.at(i);
    if (std::isnan(a) != std::isnan(b)) return INFINITY;
    if (!std::isnan(a) && a != b) largest = std::max(largest, std::abs(a - b));
  }
  return largest;
}

}  // namespace keel::compare

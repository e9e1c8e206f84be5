#include "frontend/compare/bounds/running_error.h"

namespace keel::compare {

SumError any_sum_error(const SumTerms& t) {
  const double root = std::sqrt(t.count), length = std::sqrt(t.squares);
  const double any_order = t.count * t.sizes;
  // Terms of random signs and sizes keep their sum within 4 of its deviations; what is beyond that
  // is a trend, along which running sums, and with them their roundings, grow.
  const double drift = t.count / 2 * std::max(0.0, std::abs(t.total) - 4 * length);
  // A product's rounding and the result's; and each term may be flushed to zero.
  const double ends = 2 * kEps * t.sizes + t.count * kTiny;
  return {kEps * std::min(any_order, 8 * root * t.sizes + drift) + ends,
          kEps * std::min(any_order, 8 * root * length + drift) + ends,
          kEps * std::min(any_order / 8, root * length) + ends / 8};
}

}  // namespace keel::compare

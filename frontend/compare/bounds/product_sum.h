// Sums of products whose factors may be off themselves.
#pragma once

#include <cmath>
#include <vector>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/bounds/running_error.h"

namespace keel::compare {

// A sum of products a b in any order.
struct ProductSum {
  SumTerms terms;
  double of_factors = 0;  // what the errors of the factors come to

  void add(const Err& a, const Err& b) {
    terms.add(a.value * b.value);
    of_factors += a.error * std::abs(b.value) + std::abs(a.value) * b.error;
  }
  Err result() const {
    constexpr double kSecondOrder = 1.05;  // products of errors
    return {terms.total, kSecondOrder * of_factors + any_sum_error(terms).largest +
                             2 * kEps * std::abs(terms.total) + kTiny};
  }
};

// The errors of sums as the bounds of neighbouring elements from `first` on.
inline void write(const std::vector<ProductSum>& sums, Tensor& bound, std::size_t first = 0) {
  for (std::size_t e = 0; e < sums.size(); ++e) {
    bound.as<double>()[first + e] = sums[e].result().error;
  }
}

}  // namespace keel::compare

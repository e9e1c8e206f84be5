// Bounds of the sums of attention, which are vectors of features.
#pragma once

#include <vector>

#include "frontend/compare/bounds/running_error.h"

namespace keel::compare {

inline constexpr double kSecondOrder = 1.05;  // products of errors

// The sums over keys or queries of a factor times a vector of features.
class FeatureSums {
 public:
  // Instructions for bf16, which multiply if `is_narrow`, take subnormal numbers as 0.
  FeatureSums(std::int64_t width, bool is_narrow)
      : is_narrow_(is_narrow), terms_(std::size_t(width)), errors_(std::size_t(width), 0) {}
  // `of_factor` is how far the factor may be off.
  void add(double factor, double of_factor, const double* x) {
    for (std::size_t c = 0; c < terms_.size(); ++c) {
      terms_[c].add(factor * x[c]);
      errors_[c] += of_factor * std::abs(x[c]);
      if (is_narrow_ && std::abs(x[c]) < kTiny) errors_[c] += std::abs(factor * x[c]);
    }
  }
  void write(double scale, double* bound) const {
    for (std::size_t c = 0; c < terms_.size(); ++c) {
      const double error = kSecondOrder * errors_[c] + any_sum_error(terms_[c]).largest;
      bound[c] = scale * (error + 2 * kEps * std::abs(terms_[c].total)) + kTiny;
    }
  }

 private:
  bool is_narrow_;
  std::vector<SumTerms> terms_;
  std::vector<double> errors_;
};

}  // namespace keel::compare

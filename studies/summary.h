// Short summaries of many numbers.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace keel::study {

// The value below which a share q in [0, 1] of the values lies, interpolated between neighbours.
// Throws Error{kUsage} without values.
double quantile(std::vector<double> values, double q);

// a - b of two lists of one length, element by element.
std::vector<double> differences(std::span<const double> a, std::span<const double> b);

// The mean, and what the mean of all seeds is at least, by a one-sided t test at 5 %: the mean of n
// values less t s / sqrt(n), where s is their deviation and t the 95 % quantile of Student's
// distribution with n - 1 degrees of freedom. Values of two networks are paired by their seed: the
// values are the differences. Both throw Error{kUsage} for no value, and the second for one.
double mean_of(std::span<const double> values);
double mean_at_least(std::span<const double> values);

// "powernorm" of "powernorm{heads=4}".
std::string name_of_norm(const std::string& norm);

// "0.51/0.48/0.47"
std::string joined(std::span<const double> values, int digits);

}  // namespace keel::study

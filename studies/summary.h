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

// "0.51/0.48/0.47"
std::string joined(std::span<const double> values, int digits);

}  // namespace keel::study

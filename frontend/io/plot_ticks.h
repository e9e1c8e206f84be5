// The marks on an axis, and their texts.
#pragma once

#include <string>
#include <vector>

namespace keel::io {

// Ranges must be at least 1e-9 of their ends wide, so that ticks differ.

// The multiples of 1, 2 or 5 times a power of ten within [low, high], about `wanted` of them.
std::vector<double> linear_ticks(double low, double high, int wanted);

// The values to mark on a logarithmic axis over [low, high], 0 < low: powers of ten (every few if
// there are many), also 2 and 5 times these if there are few, linear_ticks if even these are few.
std::vector<double> log_ticks(double low, double high);

// Short texts for ticks: 0.25, 20k, 1e-7.
std::vector<std::string> tick_labels(const std::vector<double>& ticks);

}  // namespace keel::io

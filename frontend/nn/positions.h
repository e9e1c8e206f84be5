// Where in a sentence a token stands, as features that are added to its embedding.
#pragma once

#include "frontend/nn/net.h"

namespace keel::nn {

// Sinusoids of fixed rates (Vaswani et al. 2017, in the form of the common translation toolkits),
// (length, width), the first `first` being the number of the first position. With h = width / 2 and
// f_i = exp(-i ln(10000) / (h - 1)):  row p = [sin(p f_0) ... sin(p f_{h-1}), cos(p f_0) ...].
// Throws Error{kUsage} unless width is even and >= 4.
Value sinusoidal_positions(Net& net, std::int64_t length, std::int64_t width,
                           std::int64_t first = 2);

// A learned table (longest, width) "<name>", N(0, deviation^2); its first `length` rows. Throws
// Error{kUsage} for a length beyond the table.
struct LearnedPositions {
  std::int64_t longest = 512;
  double deviation = 0.02;
};
Value learned_positions(Net& net, const std::string& name, std::int64_t length, std::int64_t width,
                        const LearnedPositions& options = {});

}  // namespace keel::nn

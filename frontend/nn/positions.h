// The position of a token in its sentence, as features that are added to its embedding.
#pragma once

#include "frontend/nn/net.h"

namespace keel::nn {

// Sinusoids of fixed rates (Vaswani et al. 2017, in the form of the common translation toolkits),
// (length, width). The first position has the number `first`. With h = width / 2 and
// f_i = exp(-i ln(10000) / (h - 1)):  row p = [sin(p f_0) ... sin(p f_{h-1}), cos(p f_0) ...].
// Throws Error{kUsage} unless width is even and >= 4.
Value sinusoidal_positions(Net& net, std::int64_t length, std::int64_t width,
                           std::int64_t first = 2);

// The first `length` rows of a learned table (longest, width) "<name>", N(0, deviation^2). Throws
// Error{kUsage} for a length beyond the table.
struct LearnedPositions {
  std::int64_t longest = 512;
  double deviation = 0.02;
};
Value learned_positions(Net& net, const std::string& name, std::int64_t length, std::int64_t width,
                        const LearnedPositions& options = {});

}  // namespace keel::nn

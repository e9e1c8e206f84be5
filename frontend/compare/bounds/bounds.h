// Errors that rounding may add to float32 results.
#pragma once

namespace keel::compare {

inline constexpr double kEps = 0x1p-24;  // half the distance from 1 to the next float
// Every norm keeps these bounds, in units of 2 kEps on the scales of norm_errors.h: the first for y
// and the statistics, the second for the gradients.
inline constexpr double kForwardBound = 16, kBackwardBound = 64;

}  // namespace keel::compare

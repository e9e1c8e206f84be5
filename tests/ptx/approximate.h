// Approximate instructions, of which NVIDIA documents a bound of the error.
#pragma once

namespace keel::ptx {

// By how many units in the last place results are off, away from zero or, below 0, towards it, but
// by no more than is documented: 2 of an exponential, 1 of a reciprocal.
void set_approximation(int units);

}  // namespace keel::ptx

// Approximate instructions, of which NVIDIA documents a bound of the error.
#pragma once

namespace keel::ptx {

// Where within that error results lie: 0 is the nearest float, 1 and -1 the edges of the
// error away from zero and towards it.
void set_approximation(int edge);

}  // namespace keel::ptx

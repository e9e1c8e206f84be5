// The tests of instructions, by group; all of them together try every instruction there is.
#pragma once

namespace keel::ptx {

void check_integers();
void check_bits();
void check_carries();
void check_floats();
void check_rounding();
void check_approximations();
void check_comparisons();
void check_conversions();
void check_moves();
void check_accesses();
void check_shuffles();

}  // namespace keel::ptx

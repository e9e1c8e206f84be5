// How much the tests of this run try: more with KEEL_THOROUGH, less on an emulator.
#pragma once

#include "bench/norm_cases.h"

namespace keel::test {

using namespace keel::bench;  // NOLINT: tests say NormCase, run_norm, ...

// Whether KEEL_THOROUGH is in the environment.
bool is_thorough();
// Whether the backend under test is an emulator, which is a thousand times slower than the device.
bool is_emulated();
// How often to run something that a race between threads might spoil: `n` times, but once on an
// emulator, because it always takes the same order.
int repeats(int n);

// generated_cases and large_cases, and on an emulator some of those of moderate size, the
// same every time.
std::vector<NormCase> tested_cases(NormLayout layout, int every = is_thorough() ? 1 : 11);
std::vector<NormCase> tested_large_cases(NormLayout layout);

}  // namespace keel::test

// The one approximate instruction that kernels may take: the first guess of a division in double,
// which NVIDIA's code refines until it is exact. Those of float32 (ex2.approx, rcp.approx, ...) are
// left out, so that a kernel whose results depend on them is refused by their names: they need not
// be the same on every GPU. backends/cuda/kernels/functions.cuh has functions without them.
#pragma once

namespace keel::ptx {

// Whether first guesses are a unit in their last place higher. No result may depend on it.
void set_high_approximation(bool wanted);

}  // namespace keel::ptx

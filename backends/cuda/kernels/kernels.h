// The kernels of the cuda backend. Each function takes a node and returns how to bind its kernel.
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

#include "src/runtime/declare_kernels.inc"

// Merges kernel b, which runs right after a, into a, so that one launch does the work of both.
// Returns false, and changes nothing, unless both are optimizer updates that can share a launch.
bool join_updates(Kernel& a, const Kernel& b);
// Does the same for two kernels that sum squares.
bool join_sums(Kernel& a, const Kernel& b);

// The library that computes convolutions, with its version; "" if they are products.
std::string convolution_library();

// Copies src to dst, unless the scalar `guard` is given and not finite.
void copy_guarded(const TensorRef& dst, const TensorRef& src, const TensorRef& guard);

}  // namespace keel::cuda

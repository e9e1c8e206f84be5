// The kernels of the cuda backend. Each function takes a node and returns how to bind its kernel.
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

#include "src/runtime/declare_kernels.inc"

// Whether a kernel is an optimizer update, a sum of squares, or a copy with a guard.
bool is_update(const Kernel& kernel);
bool is_sum(const Kernel& kernel);
bool is_copy(const Kernel& kernel);
// Merges kernel b, which may run right after a, into a, so that one launch does the work of both.
// Returns false, and changes nothing, unless both are of the kind and can share a launch.
bool join_updates(Kernel& a, const Kernel& b);
bool join_sums(Kernel& a, const Kernel& b);
bool join_copies(Kernel& a, const Kernel& b);

// The library that computes convolutions, with its version; "" if they are products.
std::string convolution_library();

// A copy of src to dst, unless the scalar `guard` is given and not finite.
Kernel bind_copy(const TensorRef& dst, const TensorRef& src, const TensorRef& guard);

}  // namespace keel::cuda

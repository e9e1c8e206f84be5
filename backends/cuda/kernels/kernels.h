// The kernels of the cuda backend: each takes a node and says how to bind its kernel.
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

#include "src/runtime/declare_kernels.inc"

// dst = src, unless the scalar `guard` is given and not finite.
void copy_guarded(const TensorRef& dst, const TensorRef& src, const TensorRef& guard);

}  // namespace keel::cuda

// The kernels of the cuda backend: each takes a node and says how to bind its kernel.
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

#include "src/runtime/declare_kernels.inc"

// Lets kernel a do the work of b as well, in one launch: false, and nothing, unless both are
// optimizer updates (sums of squares) that go together. b comes right behind a.
bool join_updates(Kernel& a, const Kernel& b);
bool join_sums(Kernel& a, const Kernel& b);

// dst = src, unless the scalar `guard` is given and not finite.
void copy_guarded(const TensorRef& dst, const TensorRef& src, const TensorRef& guard);

}  // namespace keel::cuda

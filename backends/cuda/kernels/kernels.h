// The kernels of the cuda backend: each takes a node and says how to bind its kernel.
#pragma once

#include "src/runtime/backend.h"

namespace keel::cuda {

Prepared prepare_elementwise(const NodeContext& context);
#define X(op, kernel) Prepared prepare_##kernel(const NodeContext& context);
#include "src/runtime/kernel_list.inc"
#undef X
#define X(name, Name)                                  \
  Prepared prepare_##name(const NodeContext& context); \
  Prepared prepare_##name##_backward(const NodeContext& context);
#include "norm_list.inc"
#undef X

// dst = src, unless the scalar `guard` is given and not finite.
void copy_guarded(const TensorRef& dst, const TensorRef& src, const TensorRef& guard);

}  // namespace keel::cuda

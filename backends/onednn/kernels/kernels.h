// The kernels of the onednn backend: each takes a node and says how to bind its kernel. All
// floating data is float.
#pragma once

#include "src/runtime/backend.h"

namespace keel::onednn {

Prepared prepare_elementwise(const NodeContext& context);
#define X(op, kernel) Prepared prepare_##kernel(const NodeContext& context);
#include "src/runtime/kernel_list.inc"
#undef X
#define X(name, Name)                                  \
  Prepared prepare_##name(const NodeContext& context); \
  Prepared prepare_##name##_backward(const NodeContext& context);
#include "norm_list.inc"
#undef X

}  // namespace keel::onednn

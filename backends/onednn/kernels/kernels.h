// The kernels of the onednn backend. Each function takes a node and returns how to bind its kernel.
// All floating data is float.
#pragma once

#include "src/runtime/backend.h"

namespace keel::onednn {

#include "src/runtime/declare_kernels.inc"

// The panels of b for the product of a node, when oneDNN may choose; width 0: no panels.
PackedLayout matmul_packing(const NodeContext& context);

// Whether the kernel of linear_cross_entropy_step does both at once, for a loss or a step.
bool joins_loss(const NodeContext& context);

}  // namespace keel::onednn

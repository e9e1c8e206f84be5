// The kernels of the onednn backend: each takes a node and says how to bind its kernel. All
// floating data is float.
#pragma once

#include "src/runtime/backend.h"

namespace keel::onednn {

#include "src/runtime/declare_kernels.inc"

// The panels that the product of a node reads its b in when oneDNN may choose; width 0: in none.
PanelForm matmul_panels(const NodeContext& context);

}  // namespace keel::onednn

// The kernels of the onednn backend: each takes a node and says how to bind its kernel. All
// floating data is float.
#pragma once

#include "src/runtime/backend.h"

namespace keel::onednn {

#include "src/runtime/declare_kernels.inc"

}  // namespace keel::onednn

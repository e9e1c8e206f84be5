// The element types that the kernels of norms take.
#pragma once

#include <map>

#include "src/runtime/kernel_table.h"

namespace keel::onednn {

// By op: x, and dy with it, in float32 or bf16, and all else in float32. An op that is not here
// takes float32 alone.
std::map<std::string_view, KernelTypes> norm_types();

// `types` and those of the norms.
inline std::map<std::string_view, KernelTypes> with_norms(
    std::map<std::string_view, KernelTypes> types) {
  types.merge(norm_types());
  return types;
}

}  // namespace keel::onednn

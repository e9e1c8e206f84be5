// The element types that the kernels of several backends take.
#pragma once

#include <map>

#include "src/runtime/kernel_table.h"

namespace keel {

using TypesByOp = std::map<std::string_view, KernelTypes>;

// Norms: x, and dy with it, in float32 or bf16, and all else in float32. y and dx are rounded where
// the graph asks for it. A norm that is not here takes only float32.
TypesByOp norm_types();

// Products, attentions and the loss over many words: their factors in float32 or bf16, their
// results in float32.
TypesByOp product_types();

// Kernels that only move elements, of float32 or bf16.
TypesByOp mover_types();

// The types of all of these, and `others`.
TypesByOp narrow_types(TypesByOp others = {});

}  // namespace keel

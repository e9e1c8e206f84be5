// Every op, in one list: backends, `keel list` and the tests read it.
#pragma once

#include <span>

#include "src/graph/op_info.h"

namespace keel {

std::span<const OpInfo* const> all_ops();

// Adds an op from outside, which has to live as long as the program, before any graph is built.
// Throws Error{kUsage} for a name that is taken.
void add_op(const OpInfo& op);

// The op of that name, or nullptr.
const OpInfo* find_op(std::string_view name);

}  // namespace keel

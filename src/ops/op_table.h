// Every op of the engine, in one list: backends, `keel list` and the tests read it.
#pragma once

#include <span>

#include "src/graph/op_info.h"

namespace keel {

std::span<const OpInfo* const> all_ops();

// The op of that name, or nullptr.
const OpInfo* find_op(std::string_view name);

}  // namespace keel

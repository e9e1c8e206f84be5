// The kinds of nodes in words.
#pragma once

#include <string_view>

#include "src/graph/graph.h"

namespace keel {

// "input", "parameter", "state", "constant" or "op".
std::string_view kind_text(NodeKind kind);

}  // namespace keel

// The ops of the norms, for programs that need no others.
#pragma once

#include <span>

#include "src/graph/op_info.h"

namespace keel {

// Every norm and its backward, and the ops of the statistics of columns (column_moments.h,
// column_gradient_sums.h).
std::span<const OpInfo* const> norm_ops();

}  // namespace keel

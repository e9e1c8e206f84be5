// The ops of the norms, for programs that need no others.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "src/graph/op_info.h"

namespace keel {

// Every norm and its backward, and the ops of the statistics of columns (column_moments.h,
// column_gradient_sums.h).
std::span<const OpInfo* const> norm_ops();

// The inputs of a norm that are learned beside gain and bias: those that its backward, one of
// norm_ops(), has a gradient of.
std::vector<std::string_view> further_parameters(const OpInfo& norm);

}  // namespace keel

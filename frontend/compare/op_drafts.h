// Every op that is no norm and not element-wise, on small drawn inputs.
#pragma once

#include <map>
#include <string_view>

#include "frontend/compare/draft.h"

namespace keel::compare {

// Puts an op into a draft, with its gradients where it has some, and marks what is to be compared.
using BuildOp = void (*)(Draft&);

// By the names of forward ops.
const std::map<std::string_view, BuildOp>& op_drafts();

}  // namespace keel::compare

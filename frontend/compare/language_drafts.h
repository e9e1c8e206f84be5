// The ops of language models in small graphs, and in large ones on hard numbers.
#pragma once

#include "frontend/compare/op_drafts.h"

namespace keel::compare {

Outputs small_multilinear(Draft& d);
Outputs large_multilinear(Draft& d);
Outputs small_linear_cross_entropy(Draft& d);
Outputs large_linear_cross_entropy(Draft& d);
void small_loss_step(Draft& d);
void large_loss_step(Draft& d);

}  // namespace keel::compare

// The ops of language models in small graphs, and in large ones on hard numbers.
#pragma once

#include "frontend/compare/cases/op_cases.h"

namespace keel::compare {

Outputs small_multilinear(CaseBuilder& d);
Outputs large_multilinear(CaseBuilder& d);
Outputs small_linear_cross_entropy(CaseBuilder& d);
Outputs large_linear_cross_entropy(CaseBuilder& d);
void small_loss_step(CaseBuilder& d);
void large_loss_step(CaseBuilder& d);

}  // namespace keel::compare

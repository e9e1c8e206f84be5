// Ops and norms of one's own. An op is a plain struct, OpInfo: what its inputs are, which types its
// outputs have, and which nodes its backward adds. Each backend that shall run it has a kernel of
// its own; the one of the reference is written first and judges the others.
#pragma once

#include <string>
#include <utility>

#include "frontend/compare/bounds/running_error.h"
#include "frontend/compare/cases/gradient_check.h"
#include "frontend/compare/cases/own_op.h"
#include "frontend/nn/norm_table.h"
#include "include/keel/addition.h"
#include "include/keel/run.h"

namespace keel {

// Names an op for graphs, backends, `keel list ops` and `keel compare op`.
inline Addition op_of(compare::OwnOp op) {
  return {[op = std::move(op)] { compare::enter(op); }};
}

// Names a norm wherever a norm is named: model.norm, `keel norm`, `keel compare norm`. Options is a
// struct with fields(), has_bias(), apply() and kBatchType, as the comment on top of
// keel/inside/frontend/nn/norm_table.h describes it. The op of a norm "mynorm" is called mynorm,
// my_norm, or the like.
template <class Options>
Addition norm_of(nn::NormFacts facts) {
  return {[facts = std::move(facts)] { nn::add_norm({facts, -1, "", nn::make_norm<Options>}); }};
}

}  // namespace keel

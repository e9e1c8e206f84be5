// An op from outside the tree, with all that keel asks of an op.
#pragma once

#include <map>
#include <string>

#include "frontend/compare/bounds/node_bounds.h"
#include "frontend/compare/cases/op_cases.h"

namespace keel::compare {

// The backward of an op NAME is an op of its own, called NAME_backward.
struct OwnOp {
  const OpInfo* info = nullptr;  // lives as long as the program
  // By backend: "reference", whose values are float64, and "onednn", whose are float32. Any other
  // backend refuses the op by its name.
  std::map<std::string, Prepare> kernels;
  BoundRule bound = nullptr;  // what rounding may add; without it a comparison stops at the op
  BuildOp op_case = nullptr;  // the inputs of `keel compare op`; a norm that has a name needs none
};

// Adds the op to the table of ops, and what belongs to it where that is looked for. Throws
// Error{kUsage} for a name that is taken, without a kernel for the reference, and for a kernel of
// another backend.
void enter(const OwnOp& op);

}  // namespace keel::compare

// TileSteps a kernel of a module into instructions that can be run.
#pragma once

#include "tests/ptx/instruction.h"
#include "tests/ptx/module.h"

namespace keel::ptx {

// Throws Fault that names the line and each instruction or operand that is not known.
Code decode(const Module& module, const std::string& kernel);

}  // namespace keel::ptx

// What the speed of a backend's products depends on and its description does not say.
#pragma once

#include <string>

#include "src/runtime/backend.h"

namespace keel {

// The instruction set that oneDNN may use, and whether it emulates bf16; whether CUDA rounds
// float32 factors to tf32; empty for others.
std::string product_facts(const Backend& backend);

}  // namespace keel

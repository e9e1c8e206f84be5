// The refusals of a backend, found by asking it.
#pragma once

#include <string>

#include "src/runtime/backend.h"

namespace keel::cli {

// Asks the backend for each model's training step in f32, and for a product in f64:
// "f64 matmul: <reason>", or "nothing".
std::string refusal_summary(Backend& backend);

}  // namespace keel::cli

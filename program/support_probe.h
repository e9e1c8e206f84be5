// The refusals of a backend, found by asking it.
#pragma once

#include <string>
#include <vector>

#include "src/runtime/backend.h"

namespace keel::cli {

// Each model's training step in f32, and a product in f64.
std::vector<Graph> graphs_to_ask_for();

// Asks the backend for every node of the graphs: "matmul: <reason>", or "nothing".
std::string refusal_summary(Backend& backend, const std::vector<Graph>& graphs);

}  // namespace keel::cli

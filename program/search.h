// keel train --search
#pragma once

#include <CLI/CLI.hpp>

#include "program/commands.h"

namespace keel::cli {

// --search, --by and --jobs, once the other options of `keel train` are there.
void add_search_options(CLI::App& app, TrainArgs& args);

// Trains every point of the grid in a folder of its own, and chooses the best by the validation
// rows. Returns 0, 1 if a training failed otherwise than by divergence, 6 if all diverged, or 128
// and the signal that came; the same command then goes on.
// Throws Error{kUsage} in one of several processes.
int run_search(TrainArgs args, int processes);

}  // namespace keel::cli

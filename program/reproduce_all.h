// `keel reproduce all`: every table and figure of the papers on one page.
#pragma once

#include "program/commands.h"

namespace keel::cli {

// Trains what is missing of every table in the folder OUT/TABLE, one table after the other, or
// nothing with args.as_is, runs the studies of figures that have none, and writes OUT/all.md and
// OUT/all.html. A table that cannot be trained with the available data keeps its place, with the
// paper's values and the reason.
// Returns the exit code of `keel reproduce`. Throws Error{kUsage} with --tasks, --norms or --plan,
// which need one table, and for seeds that do not follow each other, which studies cannot take.
int run_reproduce_all(ReproduceArgs args);

}  // namespace keel::cli

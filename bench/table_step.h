// keel bench table: a training step of one large table of embeddings, by its whole gradient, by
// rows of it, and by a lazy update of those rows.
#pragma once

#include "bench/timing.h"
#include "frontend/optim/optimizer.h"

namespace keel::bench {

struct TableCase {
  std::int64_t vocabulary = 50000, width = 256, ids = 4096;  // ids a batch, drawn evenly
  optim::Optimizer optimizer = optim::Optimizer::kAdam;
};

// Each is a step of its own: a lookup, its backward, clipping of the norm of all and the update.
struct TableStep {
  Timing whole, rows, lazy;
};

// Measured in turns.
TableStep bench_table(Backend& backend, const TableCase& table, int rounds);

}  // namespace keel::bench

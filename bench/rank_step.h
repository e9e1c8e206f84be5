// A training step of several ranks, and its part that they spend with each other.
#pragma once

#include "frontend/train/job.h"
#include "frontend/train/shard_runner.h"

namespace keel::bench {

struct RankStep {
  double seconds = 0;  // median of the steps
  double among = 0;    // of it, in functions of the communicator: waiting counts, too; median
  double items = 0;    // rows or tokens of all steps, divided by their number
  // A step adds up so many bytes over the ranks, and gathers others besides: so often, and so many
  // of each rank in all.
  double summed_bytes = 0, gatherings = 0, gathered_bytes = 0;
};

// Trains so many steps as `keel train` does, after two to warm up. All ranks call this.
RankStep bench_rank_step(Backend& backend, const train::Job& job, train::Ranks ranks,
                         std::int64_t steps);

}  // namespace keel::bench

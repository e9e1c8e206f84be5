// The measured costs of adding up and gathering over ranks, and a model of them for more ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "src/runtime/communicator.h"
#include "src/runtime/rank_sum.h"

namespace keel::bench {

// The line between two ranks, as the model has it: a message of S bytes takes latency + S / rate.
struct RankLink {
  double latency = 0;  // seconds
  double rate = 0;     // bytes a second

  // The seconds to add up S bytes on N ranks: each sends and receives (N - 1) / N * S twice, in
  // N - 1 messages each time.
  double sum_seconds(double bytes, double ranks) const;
  // The seconds to gather the bytes that each of N ranks gives.
  double gather_seconds(double bytes_each, double ranks) const;
};

struct SumTime {
  double bytes = 0;
  double fixed = 0, fast = 0;  // seconds
};

// A sum is timed in many rounds: the scheduler of a busy machine lengthens the least one least.
struct RoundTimes {
  double least = 0, median = 0;  // seconds
};

// The time that the ranks need to add up so many bytes when each has the sums of its own shards.
// All ranks call this.
RoundTimes sum_seconds(Communicator& ranks, double bytes, std::int64_t shards, Reduction reduction);
// The least times of sums from 1 KiB to 32 MiB, with a shard a rank. All ranks call this.
std::vector<SumTime> time_sums(Communicator& ranks);
// The link for which the fixed sums' times fit best, by least squares of the relative error. It has
// no latency where noise would make that negative.
RankLink fitted_link(const std::vector<SumTime>& sums, int ranks);

}  // namespace keel::bench

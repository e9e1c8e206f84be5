// What it costs ranks to add up and to gather, measured, and what a model makes of it for more of
// them.
#pragma once

#include <vector>

#include "src/runtime/communicator.h"
#include "src/runtime/rank_sum.h"

namespace keel::bench {

// The line between two ranks, as the model has it: a message of S bytes takes latency + S / rate.
struct RankLink {
  double latency = 0;  // seconds
  double rate = 0;     // bytes a second

  // Of adding up S bytes on N ranks: each sends and receives (N - 1) / N * S twice, in N - 1
  // messages each time.
  double sum_seconds(double bytes, double ranks) const;
  // Of gathering what each of N ranks gives.
  double gather_seconds(double bytes_each, double ranks) const;
};

struct SumTime {
  double bytes = 0;
  double fixed = 0, fast = 0;  // seconds
};

// The least of many rounds, because the others measure the scheduler of a busy machine.
double sum_seconds(Communicator& ranks, double bytes, Reduction reduction);
// Sums from 1 KiB to 32 MiB. All ranks call this.
std::vector<SumTime> time_sums(Communicator& ranks);
// The link for which the fixed sums' times fit best, by least squares of the relative error.
RankLink fitted_link(const std::vector<SumTime>& sums, int ranks);

}  // namespace keel::bench

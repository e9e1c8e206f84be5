// How much of their first values the running statistics of norms still hold.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/train/job.h"

namespace keel::train {

// The share of its first value, 0 or 1, that a running statistic of a norm over the batch still has
// after so many updates: keep^updates, where an update of several micro-batches counts as often.
struct FirstValue {
  std::string norm = {};  // the one that keeps most of it; empty: no norm has such statistics
  double keep = 0, share = 0;
};
FirstValue first_value_left(const Job& job, std::int64_t updates);

// A warning if the share is above a twentieth, for evaluation then normalizes by numbers that are
// partly initial values; otherwise empty.
std::string first_value_warning(const Job& job, std::int64_t updates);

}  // namespace keel::train

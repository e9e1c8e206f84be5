// The observer of a norm's statistics (batch_statistics.h). A line has the update's "epoch", in
// parts, the "site", and those numbers of kStatisticsNames that the norm has. They are of the first
// micro-batch of the update, beside the running statistics before it; where shards of a batch have
// statistics of their own, of its first shard.
#pragma once

#include "studies/observers.h"
#include "studies/statistics_tables.h"

namespace keel::study {

// Throws Error{kUsage} for a network without such a norm, and for a site that is none of its norms.
std::unique_ptr<train::Observer> statistics_observer(const train::Job& job,
                                                     const ObserverOptions& options);

// A line that the observer wrote: the value of "step" and the rest.
StatisticsLine statistics_line(std::int64_t step, const nlohmann::ordered_json& values);

}  // namespace keel::study

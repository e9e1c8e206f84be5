// The observer of the gradients at every norm: how long the gradient is that comes to a norm, and
// how long the one is that the norm passes on. A line has "epoch" and "norms", an object of
// "SITE": {"dy": |dloss/dy|_2, "dx": |dloss/dx|_2 by way of the norm}, of the first micro-batch of
// the update; where shards of a batch have statistics of their own, of its first shard.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "studies/observers.h"
#include "studies/study.h"

namespace keel::study {

// Throws Error{kUsage} for a network without a norm of activations.
std::unique_ptr<train::Observer> gradients_observer(const train::Job& job,
                                                    const ObserverOptions& options);

// |dx| / |dy| at every norm over the updates of a run, from the observer's lines.
Table gradients_table(const std::string& run, const std::vector<nlohmann::ordered_json>& lines);

}  // namespace keel::study

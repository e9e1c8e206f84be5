// Where a run's epochs ended, which places its updates on an axis of epochs.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace keel::train {

// Updates at which epochs ended, and the epochs completed there; both increase.
using EpochEnds = std::vector<std::pair<double, double>>;

// The epochs completed after `step` updates, interpolated between the ends of two epochs: 0 at the
// start; after the last end at the speed of the last epoch. Nothing without an end.
std::optional<double> epoch_at(const EpochEnds& ends, double step);

}  // namespace keel::train

// The choices for an update whose loss or gradient is not finite.
#pragma once

#include <array>
#include <string_view>

namespace keel::train {

// stop: the run ends with Error{kDiverged}.
// skip: the update is left out: weights, optimizer state and running statistics stay as they were,
//   and the run goes on with the next rows and the next step number.
// rollback: weights, optimizer state and running statistics become those of the last checkpoint
//   that the recipe asked for, and all updates since then are left out. The run thus does not
//   meet their rows again in this epoch: the update that spoilt the weights may be earlier than
//   the one that shows it.
// skip and rollback stop as well once train.nonfinite_limit is reached: that many updates left out
// in a row, or that many rollbacks in the whole run.
enum class OnNonFinite { kStop, kSkip, kRollback };
constexpr auto choice_words(OnNonFinite) {
  return std::to_array<std::string_view>({"stop", "skip", "rollback"});
}

}  // namespace keel::train

#include "frontend/train/epoch_ends.h"

namespace keel::train {

std::optional<double> epoch_at(const EpochEnds& ends, double step) {
  if (ends.empty()) return std::nullopt;
  std::pair<double, double> from{0, 0}, to = ends.front();
  for (std::size_t i = 1; i < ends.size() && step > to.first; ++i) {
    from = std::exchange(to, ends[i]);
  }
  return from.second + (step - from.first) / (to.first - from.first) * (to.second - from.second);
}

}  // namespace keel::train

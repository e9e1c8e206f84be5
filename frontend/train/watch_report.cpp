#include "frontend/train/watch_report.h"

namespace keel::train {

void WatchReport::take(std::int64_t step, std::span<const double> values) {
  std::map<std::string, std::size_t> places;  // of the largest
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t& place = places.try_emplace(watches_[i].name, i).first->second;
    if (values[i] > values[place]) place = i;
  }
  largest_.clear();
  for (const auto& [name, place] : places) {
    const nn::Watch& watch = watches_[place];
    largest_[name] = values[place];
    if (values[place] <= watch.limit || !warned_.insert(name).second) continue;
    warn_(fmt::format("step {}: {}: {} is {:.4g}, above {}: {}", step, watch.layer, name,
                      values[place], watch.limit, watch.beyond));
  }
}

}  // namespace keel::train

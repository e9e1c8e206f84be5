#include "frontend/train/monitor_report.h"

namespace keel::train {

void MonitorReport::take(std::int64_t step, std::span<const double> values) {
  std::map<std::string, std::size_t> places;  // of the largest
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::size_t& place = places.try_emplace(monitors_[i].name, i).first->second;
    if (values[i] > values[place]) place = i;
  }
  largest_.clear();
  for (const auto& [name, place] : places) {
    const nn::Monitor& monitor = monitors_[place];
    largest_[name] = values[place];
    if (values[place] <= monitor.limit || !warned_.insert(name).second) continue;
    warn_(fmt::format("step {}: {}: {} is {:.4g}, above {}: {}", step, monitor.layer, name,
                      values[place], monitor.limit, monitor.beyond));
  }
}

}  // namespace keel::train

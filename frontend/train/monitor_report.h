// The values that layers monitor while they train (nn::Monitor), for the log and as warnings.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "frontend/nn/net.h"

namespace keel::train {

class MonitorReport {
 public:
  using Warn = std::function<void(const std::string&)>;

  MonitorReport(std::vector<nn::Monitor> monitors, Warn warn)
      : monitors_(std::move(monitors)), warn_(std::move(warn)) {}

  // Takes the values of a step in the order of the monitors, or none when the step was not
  // monitored. Warns of a value above its limit, naming the layer, but only once for each quantity.
  void take(std::int64_t step, std::span<const double> values);
  // The largest value of each quantity in the last step that was taken.
  const std::map<std::string, double>& largest() const { return largest_; }

 private:
  std::vector<nn::Monitor> monitors_;
  Warn warn_;
  std::map<std::string, double> largest_;
  std::set<std::string> warned_;
};

}  // namespace keel::train

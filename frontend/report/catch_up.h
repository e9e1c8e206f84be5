// The number of updates that a norm needs to get as far as training without one ever gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/report/charts.h"

namespace keel::report {

// A group's validation curve of a metric, the median over its seeds, compared with that of the
// baseline: the group with the same settings, except that its model.norm is "none".
struct CatchUp {
  std::string metric, unit, group, baseline;
  double goal = 0, goal_step = 0;  // the baseline's best value, and the updates done until it
  std::optional<double> step;      // the group's first evaluation that is at least as good
  double best = 0, best_step = 0;  // the group's own best

  // `step` over the baseline's updates; nothing if the group never gets there.
  std::optional<double> share() const;
};

// For every metric with a better direction, a row for each group that has a baseline; none without
// evaluations.
std::vector<CatchUp> catch_ups_of(const Section& section, const std::vector<MetricFacts>& metrics);

}  // namespace keel::report

// How many updates a norm takes to get as far as training without one ever gets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frontend/report/charts.h"

namespace keel::report {

// A metric's validation curve, the median over a group's seeds, beside that of the baseline: the
// group whose settings are the same but for model.norm, which is "none" there.
struct CatchUp {
  std::string metric, unit, group, baseline;
  double goal = 0, goal_step = 0;  // the baseline's best value, and after how many updates
  std::optional<double> step;      // the group's first evaluation that is at least as good
  double best = 0, best_step = 0;  // the group's own

  // Of the baseline's updates; nothing where the group never gets there.
  std::optional<double> share() const;
};

// For every metric of which more or less is better, a row for each group that has a baseline; none
// where nobody evaluated.
std::vector<CatchUp> catch_ups_of(const Section& section, const std::vector<MetricFacts>& metrics);

}  // namespace keel::report

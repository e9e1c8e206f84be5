// The final numbers of runs, and their statistics over several seeds.
#pragma once

#include "frontend/report/charts.h"
#include "frontend/report/spread.h"

namespace keel::report {

// A metric or the loss on a split: for the last weights, for those that were best on the validation
// set, or for the average of the last checkpoints.
struct Figure {
  std::string split, metric, weights;  // "test", "error", "best"
  std::string unit;                    // "%", or none
  bool higher_is_better = false;

  std::string key() const;    // "test.error.best"
  std::string title() const;  // "test error %, best"
};

// All figures that the section's runs have: the metrics, the first also at its best on the
// validation set, then the losses.
std::vector<Figure> figures_of(const Section& section, const std::vector<MetricFacts>& metrics);

// Nothing if the run does not have the number, or not yet. The best on the validation set so far,
// and the mean training loss of the last epoch, are known for unfinished runs too.
std::optional<double> value_in(const Run& run, const Figure& figure);

// How many test items a run's figure is a share of, where that is known.
std::optional<double> counted_in(const Run& run, const Figure& figure);

// The spread over the finished runs of a group.
Spread spread_in(const Group& group, const Figure& figure);

// Costs over the finished runs of a group: seconds, items per second, epochs.
struct Costs {
  Spread seconds, items_per_second, epochs;
};
Costs costs_of(const Group& group);

// The epochs completed, with fractions; nothing for a run that has not completed one.
std::optional<double> epochs_of(const Run& run);

}  // namespace keel::report

// The numbers that runs end with, and what several seeds make of them.
#pragma once

#include "frontend/report/charts.h"
#include "frontend/report/spread.h"

namespace keel::report {

// A metric or the loss on a split: of the last weights, of those that were best on the validation
// set, or of the average of the last checkpoints.
struct Figure {
  std::string split, metric, weights;  // "test", "error", "best"
  std::string unit;                    // "%", or none
  bool higher_is_better = false;

  std::string key() const;    // "test.error.best"
  std::string title() const;  // "test error %, best"
};

// All that the section's runs have: the metrics, the first also at its best on the validation set,
// then the losses.
std::vector<Figure> figures_of(const Section& section, const std::vector<MetricFacts>& metrics);

// Nothing where the run has no such number, or not yet. The best on the validation set so far, and
// the mean training loss of the last epoch, are known of every run.
std::optional<double> value_in(const Run& run, const Figure& figure);

// Over the finished runs of a group.
Spread spread_in(const Group& group, const Figure& figure);

// Over the finished runs of a group: seconds, items in a second, epochs.
struct Costs {
  Spread seconds, items_per_second, epochs;
};
Costs costs_of(const Group& group);

// Epochs completed, in parts, and nothing of a run that has not completed one.
std::optional<double> epochs_of(const Run& run);

}  // namespace keel::report

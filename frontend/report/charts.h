// The charts of a section: one for each quantity, with a line for each group.
#pragma once

#include <functional>

#include "frontend/io/plot.h"
#include "frontend/report/groups.h"

namespace keel::report {

// What a metric counts in, and which way is better.
struct MetricFacts {
  std::string name, unit;
  bool higher_is_better = false;
};

// The metrics of a run's model, the first being that which decides which weights are the best.
using FactsOf = std::function<std::vector<MetricFacts>(const Run&)>;

struct Chart {
  std::string name;     // "valid-error"
  std::string caption;  // what is drawn
  io::Plot plot;
};

// Training and validation loss, every metric of every split, and what single updates say, but for
// what never changes. They are drawn along epochs, and along steps if a run has not completed one.
// The vertical axis is logarithmic where less is better and the values, all positive, span more
// than a decade. A group has the same colour and dashes in every chart.
std::vector<Chart> charts_of(const Section& section, const std::vector<MetricFacts>& metrics);

}  // namespace keel::report

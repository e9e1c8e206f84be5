// The charts of a section: one for each quantity, with a line for each group.
#pragma once

#include <functional>

#include "frontend/io/plot.h"
#include "frontend/report/groups.h"
#include "src/core/choice.h"

namespace keel::report {

// A metric's unit, and which way is better.
struct MetricFacts {
  std::string name, unit;
  bool higher_is_better = false;
  bool has_direction = true;  // false: neither way is better
};

// The metrics of a run's model; the first one decides which weights are the best.
using FactsOf = std::function<std::vector<MetricFacts>(const Run&)>;

enum class ChartAxis { kAuto, kUpdates, kEpochs };
constexpr auto choice_words(ChartAxis) {
  return std::to_array<std::string_view>({"auto", "updates", "epochs"});
}

// The horizontal axis of charts.
struct ChartOptions {
  ChartAxis axis = ChartAxis::kAuto;  // epochs if each run has completed one, else updates
  bool log_x = false;
};

struct Chart {
  std::string name;     // "valid-error"
  std::string caption;  // the quantity, the data, and the runs with their seeds
  io::Plot plot;        // without a title: the caption and the axes say what is drawn
};

// Training and validation loss, every metric of every split, and the quantities of single updates,
// except those that never change. The vertical axis is logarithmic if less is better and the values
// are all positive and span more than a decade. A group has the same colour and dashes in every
// chart (styles_of). Throws Error{kUsage} for epochs if a run has not completed one.
std::vector<Chart> charts_of(const Section& section, const std::vector<MetricFacts>& metrics,
                             const ChartOptions& options = {});

}  // namespace keel::report

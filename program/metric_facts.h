// The units of a run's metrics, as its model gives them.
#pragma once

#include "frontend/report/charts.h"

namespace keel::cli {

// A model or an option that this program does not know has metrics without units.
std::vector<report::MetricFacts> metric_facts(const report::Run& run);

}  // namespace keel::cli

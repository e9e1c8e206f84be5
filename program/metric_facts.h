// What the metrics of a run count in, asked of its model.
#pragma once

#include "frontend/report/charts.h"

namespace keel::cli {

// A model or an option that this program does not know has metrics without units.
std::vector<report::MetricFacts> metric_facts(const report::Run& run);

}  // namespace keel::cli

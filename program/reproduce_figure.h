// The curves of a figure that is reproduced.
#pragma once

#include <vector>

#include "frontend/report/charts.h"
#include "program/reproduce_plan.h"

namespace keel::cli {

// A chart for each column of a table that stands for a figure, with a line for each norm: the
// column's quantity along all trainings that have said anything yet. In place of a test that nobody
// made on the way the validation set is shown, and in place of the losses of epochs those of
// updates while no run has two epochs. None of other tables.
std::vector<report::Chart> figure_charts(const Plan& plan);

}  // namespace keel::cli

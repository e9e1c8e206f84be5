// The curves of a figure that is reproduced.
#pragma once

#include <vector>

#include "frontend/report/charts.h"
#include "program/reproduce_plan.h"

namespace keel::cli {

// A chart for each column of a table that stands for a figure, with a line for each norm: the
// column's quantity along all trainings that have metrics, on the axis that the table names.
// Without tests on the way it shows the validation set, and while no run has two epochs, losses of
// updates in place of epochs. A column that a study measures has a point for each checkpoint. None
// for other tables.
std::vector<report::Chart> figure_charts(const Plan& plan);

}  // namespace keel::cli

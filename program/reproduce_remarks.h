// The remarks of a table's page besides its cells: how the numbers came about, and on which data.
#pragma once

#include <string>
#include <vector>

#include "frontend/report/comparison.h"
#include "program/reproduce_plan.h"

namespace keel::cli {

// The source, the recipe, with those of trainings whose recipe has another name, the data, the
// seeds, the program and further settings.
std::vector<std::string> remarks_of(const Plan& plan, const ReproduceArgs& args);

// The table's name and subject and, where all its trainings have built-in data, what these are in
// the place of the paper's.
std::string title_of(const Plan& plan, const ReproduceArgs& args);

// A column's title with the data of its trainings here, for the paper's name says nothing of them.
std::string headed(const Plan& plan, const ReproduceArgs& args, const study::PaperColumn& column);

// Adds a remark with the binomial standard error of a share of right answers, of each column whose
// number of test rows is known, at the mean of our values.
void add_standard_errors(const study::PaperTable& table, report::Comparison& comparison);

}  // namespace keel::cli

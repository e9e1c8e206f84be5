// The cells of a plan beside the paper's.
#pragma once

#include <string>

#include "frontend/report/comparison.h"
#include "program/reproduce_plan.h"

namespace keel::cli {

// Reads the finished runs of the plan; a cell without one says why.
report::Comparison compare(const Plan& plan, const ReproduceArgs& args);

// Adds the rows that a paper computes from others, where both are among those of the table. Ours
// are shown where both rows have a number for each of so many seeds.
void add_differences(const study::PaperTable& table, std::size_t seeds,
                     report::Comparison& comparison);
// Adds the rows of other systems that have a value in one of the table's columns: only the paper's
// numbers.
void add_systems(const study::PaperTable& table, report::Comparison& comparison);

}  // namespace keel::cli

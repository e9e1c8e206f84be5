// The part of a paper's table that the options choose.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/commands.h"
#include "studies/paper_table.h"

namespace keel::cli {

// "3": seeds 1 to 3. "4,7": these. Throws Error{kUsage} for anything else.
std::vector<std::int64_t> seeds_of(const std::string& text);

// Throws Error{kUsage} unless the seeds of this text follow each other: a study takes the first and
// how many there are.
void expect_consecutive(const std::string& text);

// The table with the columns of --tasks, by their own names or their tasks', and the rows of
// --norms. Throws Error{kUsage} for an unknown name, with the nearest known one.
study::PaperTable chosen_table(const ReproduceArgs& args);

// The folder that a column's trainings read; empty where they take their task's built-in data.
std::string data_of(const ReproduceArgs& args, const study::PaperColumn& column);

// Whether the zoo has the task of a column, and the table knows its metric.
bool is_in_zoo(const study::PaperColumn& column);

}  // namespace keel::cli

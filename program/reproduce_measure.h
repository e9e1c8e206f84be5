// Numbers of a table that no training says of itself: a study measures finished ones.
#pragma once

#include <optional>
#include <string>

#include "program/reproduce_plan.h"

namespace keel::cli {

// Why a study finds nothing to measure a column by in the data that is given; "": it does.
std::string missing_for_study(const ReproduceArgs& args, const study::PaperColumn& column);

// What keel is told to measure a training.
std::vector<std::string> study_words(const ReproduceArgs& args, const study::PaperColumn& column,
                                     const std::filesystem::path& folder);

// Lets the studies of the table's columns measure every finished training that they have not
// measured before; what they found stays in STUDY.json in the training's folder.
void measure_trials(const Plan& plan, const ReproduceArgs& args);

// What was measured of the training in a folder; nothing where it was not.
std::optional<double> measured_value(const std::filesystem::path& folder,
                                     const study::PaperColumn& column);

}  // namespace keel::cli

// Numbers of a table that trainings do not report: a study measures them afterwards.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "program/reproduce_plan.h"

namespace keel::cli {

// Why the given data have nothing by which a study can measure a column; "": they have.
std::string missing_for_study(const ReproduceArgs& args, const study::PaperColumn& column);

// The arguments for the keel that measures a training, by the call's backend.
std::vector<std::string> study_words(const ReproduceArgs& args, const study::PaperColumn& column,
                                     const Trial& trial);

// Has the studies of the table's columns measure every finished training that they have not
// measured before; of a figure, every checkpoint that the training keeps, too. Their results stay
// in STUDY.json, and STUDY-STEP.json, in the training's folder.
void measure_trials(const Plan& plan, const ReproduceArgs& args);

// The measured value of the training in a folder; nothing if it was not measured.
std::optional<double> measured_value(const std::filesystem::path& folder,
                                     const study::PaperColumn& column);

// Gives what was measured of the checkpoints of the training in a folder, by their updates.
std::map<std::int64_t, double> measured_along(const std::filesystem::path& folder,
                                              const study::PaperColumn& column);

}  // namespace keel::cli

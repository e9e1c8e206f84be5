// result.json of a run's folder: the outcome of the run. A run that is still going on, or was
// interrupted, has none.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "frontend/train/run_report.h"

namespace keel::train {

// {"loss": ..., "error": ..., "rows": ...}: metrics in their units.
nlohmann::ordered_json evaluation_json(const Evaluation& evaluation);

// {"data": the training rows' source, "steps": ..., "epochs": ..., "test": evaluation of the last
// weights, "best_test": of the weights that were best on the validation set, ...,
// "total_seconds": ...}
nlohmann::ordered_json summary_json(const Summary& summary);

// {"outcome": "finished", ...summary_json}. Throws Error{kIo}.
void write_result(const RunFolder& folder, const Summary& summary);
// {"outcome": "diverged", "message": ...}. Throws Error{kIo}.
void write_divergence(const RunFolder& folder, std::string_view message);
// The content of result.json; null if it is not there or cannot be read.
nlohmann::ordered_json result_of(const RunFolder& folder);
// Whether it says that the run finished.
bool is_finished(const RunFolder& folder);
// Throws Error{kIo} when there is one that cannot be removed.
void remove_result(const RunFolder& folder);

// A short name of training data: the last part of a path in data.source; for built-in data the
// beginning of the rows' source, "built-in digits" of "built-in digits, train, seed 1", or "built-
// in data" where that is empty.
std::string data_name(const std::string& source, const std::string& rows);

}  // namespace keel::train

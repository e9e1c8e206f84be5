// A training run as read from its folder, whether finished, interrupted or still going on.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/train/epoch_ends.h"

namespace keel::report {

using Settings = std::map<std::string, std::string>;  // by "section.key"
// Evaluated quantities by name, in the order of the file, except those that are not finite.
using Values = std::vector<std::pair<std::string, double>>;

// A quantity in metrics.jsonl.
struct Curve {
  std::string split;                // "train", "valid" or "test"; "step": of single updates
  std::string quantity;             // "loss", "error", "grad_norm"
  std::vector<double> step, value;  // of one length, in the order of the file; NaN: not finite
};

enum class Outcome { kFinished, kDiverged, kUnfinished };

// Texts are safe to show: the files' texts after clean_text.
struct Run {
  std::filesystem::path folder;
  std::string name;   // the folder's
  std::string model;  // according to the table [run]
  Settings settings;  // all that decides the results: the recipe, and "run.backend"
  Settings facts;     // the rest of the table [run]
  std::vector<Curve> curves;
  train::EpochEnds epochs;
  Outcome outcome = Outcome::kUnfinished;
  std::string message;                 // for a run that diverged
  std::string data;                    // of a finished run: its training rows' source; "": unknown
  std::map<std::string, Values> test;  // for a finished run, by weights: "last", "best", "averaged"
  std::map<std::string, Values> counted;  // how many these values are shares of, where it is known
  double step = 0;                        // the last update in its log
  std::optional<double> seconds, items_per_second;
};

// "finished", "diverged" or "unfinished".
std::string name_of(Outcome outcome);

// The epochs completed at a step, as train::epoch_at; nothing for a run without a completed epoch.
std::optional<double> epoch_at(const Run& run, double step);

// A short name of its training data: "built-in digits", or the last part of a path; "built-in data"
// while a run on such data has not finished.
std::string data_name(const Run& run);

// Null: the run does not have it.
const Curve* find_curve(const Run& run, const std::string& split, const std::string& quantity);

// config.toml of a run: settings and facts together. Throws Error{kIo} when it cannot be read,
// Error{kBadInput} naming file and line if it is not a recipe.
Settings read_config(const std::filesystem::path& folder);

// Reads config.toml, metrics.jsonl and, if there is one, result.json. An unfinished last line is
// skipped. Throws Error{kIo} for files that cannot be read, Error{kBadInput} naming the file for
// content that no run writes.
Run read_run(const std::filesystem::path& folder);

}  // namespace keel::report

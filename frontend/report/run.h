// A training run as its folder tells it, be it finished, interrupted or still going on.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace keel::report {

using Settings = std::map<std::string, std::string>;  // by "section.key"
// Evaluated quantities by name, in the order of the file, without those that are not finite.
using Values = std::vector<std::pair<std::string, double>>;

// A quantity as metrics.jsonl has it.
struct Curve {
  std::string split;                // "train", "valid" or "test"; "step": of single updates
  std::string quantity;             // "loss", "error", "grad_norm"
  std::vector<double> step, value;  // of one length, in the order of the file; NaN: not finite
};

enum class Outcome { kFinished, kDiverged, kUnfinished };

// Texts are fit to be shown: clean_text of what the files say.
struct Run {
  std::filesystem::path folder;
  std::string name;   // the folder's
  std::string model;  // as the table [run] says
  Settings settings;  // all that decides the numbers: the recipe, and "run.backend"
  Settings facts;     // the rest of the table [run]
  std::vector<Curve> curves;
  std::vector<std::pair<double, double>> epochs;  // (step, epochs completed there), increasing
  Outcome outcome = Outcome::kUnfinished;
  std::string message;                 // of a run that diverged
  std::map<std::string, Values> test;  // of a finished run, by weights: "last", "best", "averaged"
  double step = 0;                     // the last update that it says something of
  std::optional<double> seconds, items_per_second;
};

// "finished", "diverged" or "unfinished".
std::string name_of(Outcome outcome);

// The epochs completed at a step, in parts of an epoch between the ends of two: 0 at the start, and
// going on as in the last epoch. Nothing for a run without a completed epoch.
std::optional<double> epoch_at(const Run& run, double step);

// Null: the run says nothing of it.
const Curve* find_curve(const Run& run, const std::string& split, const std::string& quantity);

// config.toml of a run: settings and facts in one. Throws Error{kIo} when it cannot be read,
// Error{kBadInput} naming file and line for what is no recipe.
Settings read_config(const std::filesystem::path& folder);

// Reads config.toml, metrics.jsonl and, where there is one, result.json. A last line that was never
// finished is passed over. Throws Error{kIo} for files that cannot be read, Error{kBadInput} naming
// the file for what no run writes.
Run read_run(const std::filesystem::path& folder);

}  // namespace keel::report

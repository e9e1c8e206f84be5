// Estimates how long trainings still take, from the part of them that is done.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace keel::report {

// Counted in epochs or, if a number of updates may end the training, in updates.
struct Work {
  std::string kind;            // epochs, or updates, of one kind take about equally long
  double total = 0, done = 0;  // in all, and completed
  double seconds = 0;          // that the completed ones took
};

// A training's length according to its recipe.
struct Length {
  double epochs = 0;
  double most_updates = 0;  // 0: no limit
};

// The completed epochs of a run according to its metrics.jsonl, or its updates if their number is
// limited; `done` is 0 if there is no such file yet.
Work work_of(const std::filesystem::path& folder, std::string kind, const Length& length);

// The seconds until all is done if `at_once` trainings run side by side, as fast as those that were
// measured. Nothing if nothing is done yet of a kind that is still to come.
std::optional<double> remaining_seconds(std::span<const Work> works, int at_once);

// The part of all work that is done, in [0, 1].
double part_done(std::span<const Work> works);

}  // namespace keel::report

// How long trainings still take, by what of them is done.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace keel::report {

// Counted in epochs or, of a training that a number of updates may end, in updates.
struct Work {
  std::string kind;            // epochs, or updates, of one kind take about equally long
  double total = 0, done = 0;  // to do in all, and completed
  double seconds = 0;          // that those took
};

// What a recipe says of a training's length.
struct Length {
  double epochs = 0;
  double most_updates = 0;  // 0: no limit
};

// What metrics.jsonl of a run says of its completed epochs, or of its updates where their number is
// limited; nothing done where there is none yet.
Work work_of(const std::filesystem::path& folder, std::string kind, const Length& length);

// Seconds until all is done when `at_once` trainings run beside each other, as fast as those that
// were measured. Nothing while nothing of a kind that is to come is done.
std::optional<double> remaining_seconds(std::span<const Work> works, int at_once);

// The part of all that is done, in [0, 1].
double part_done(std::span<const Work> works);

}  // namespace keel::report

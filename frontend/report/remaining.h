// How long trainings still take, by the epochs that are done.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace keel::report {

struct Work {
  std::string kind;             // epochs of one kind take about equally long
  double epochs = 0, done = 0;  // to do in all, and completed
  double seconds = 0;           // that those took
};

// What metrics.jsonl of a run says of its completed epochs; nothing done where there is none yet.
Work work_of(const std::filesystem::path& folder, std::string kind, double epochs);

// Seconds until all is done when `at_once` trainings run beside each other, as fast as those that
// were measured. Nothing while no epoch of a kind that is to come is done.
std::optional<double> remaining_seconds(std::span<const Work> works, int at_once);

// The part of all epochs that is done, in [0, 1].
double part_done(std::span<const Work> works);

}  // namespace keel::report

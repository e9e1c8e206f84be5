#include "studies/sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "frontend/train/run_result.h"

namespace keel::study {

std::string training_text(const train::Job& job) {
  const auto rows =
      job.splits().stream(task::Split::kTrain,
                          {.batch = job.train().batch, .shuffle = std::uint64_t(job.train().seed)});
  return fmt::format("{} on {}, {} training rows", job.task().name(),
                     train::data_name(job.data().source, rows->source()), rows->rows());
}

std::string training_text(const StoredRun& run) {
  return fmt::format("{} on {}", run.job.task().name(),
                     train::data_name(run.job.data().source, ""));
}

void Sample::add(const std::string& line, const std::string& training, std::int64_t seed) {
  trainings_.insert(training);
  seeds_[line].insert(seed);
}

std::string Sample::caption(const std::string& what) const {
  std::set<std::int64_t> seeds;
  std::set<std::size_t> counts;
  for (const auto& [line, of_line] : seeds_) {
    seeds.insert(of_line.begin(), of_line.end());
    counts.insert(of_line.size());
  }
  if (seeds.empty()) return what;
  const std::string n = counts.size() == 1
                            ? fmt::format("{}", *counts.begin())
                            : fmt::format("{} to {}", *counts.begin(), *counts.rbegin());
  return fmt::format("{}; {}; n = {} seed{} ({})", what, fmt::join(trainings_, " and "), n,
                     n == "1" ? "" : "s", fmt::join(seeds, ", "));
}

}  // namespace keel::study

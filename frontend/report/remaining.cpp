#include "frontend/report/remaining.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "frontend/io/metrics_log.h"
#include "frontend/train/run_log.h"
#include "src/core/error.h"

namespace keel::report {
namespace {

// Whether a line says that an epoch of training ended, and when.
bool ends_epoch(const nlohmann::ordered_json& line) {
  return line.value("split", "") == "train" && line.contains("epoch") &&
         line["epoch"].is_number() && line.contains("seconds") && line["seconds"].is_number();
}

double left_of(const Work& work) { return std::max(0.0, work.epochs - work.done); }

}  // namespace

Work work_of(const std::filesystem::path& folder, std::string kind, double epochs) {
  Work work{std::move(kind), epochs};
  try {
    for (const auto& line : io::read_metrics(train::RunFolder{folder}.metrics())) {
      if (!ends_epoch(line)) continue;
      work.done = line["epoch"];
      work.seconds = line["seconds"];
    }
  } catch (const Error&) {
    return work;  // it has yet to start
  }
  return work;
}

std::optional<double> remaining_seconds(std::span<const Work> works, int at_once) {
  std::map<std::string, std::pair<double, double>> measured;  // seconds and epochs, by kind
  for (const Work& work : works) {
    measured[work.kind].first += work.seconds;
    measured[work.kind].second += work.done;
  }
  double seconds = 0;
  for (const Work& work : works) {
    if (left_of(work) == 0) continue;
    const auto& [spent, epochs] = measured[work.kind];
    if (epochs == 0) return std::nullopt;
    seconds += left_of(work) * spent / epochs;
  }
  return seconds / at_once;
}

double part_done(std::span<const Work> works) {
  double all = 0, left = 0;
  for (const Work& work : works) {
    all += std::max(work.epochs, work.done);
    left += left_of(work);
  }
  return all > 0 ? 1 - left / all : 1;
}

}  // namespace keel::report

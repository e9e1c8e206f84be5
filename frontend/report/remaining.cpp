#include "frontend/report/remaining.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "frontend/io/metrics_log.h"
#include "frontend/train/run_log.h"
#include "src/core/error.h"

namespace keel::report {
namespace {

using LogLine = nlohmann::ordered_json;

bool has_number(const LogLine& line, const char* key) {
  return line.contains(key) && line[key].is_number();
}

// Whether a line says that an epoch of training ended, and when.
bool ends_epoch(const LogLine& line) {
  return line.value("split", "") == "train" && has_number(line, "epoch") &&
         has_number(line, "seconds");
}

double left_of(const Work& work) { return std::max(0.0, work.total - work.done); }

Work in_epochs(const std::vector<LogLine>& lines, Work work) {
  for (const LogLine& line : lines) {
    if (!ends_epoch(line)) continue;
    work.done = line["epoch"];
    work.seconds = line["seconds"];
  }
  return work;
}

// The epochs may come to fewer updates than the limit; they say so when one of them is over.
Work in_updates(const std::vector<LogLine>& lines, const Length& length, Work work) {
  work.total = length.most_updates;
  for (const LogLine& line : lines) {
    if (!has_number(line, "step") || !has_number(line, "seconds")) continue;
    work.done = line["step"];
    work.seconds = line["seconds"];
    if (ends_epoch(line) && line["epoch"] > 0) {
      work.total = std::min(work.total, length.epochs * work.done / double(line["epoch"]));
    }
  }
  return work;
}

}  // namespace

Work work_of(const std::filesystem::path& folder, std::string kind, const Length& length) {
  Work work{std::move(kind), length.most_updates > 0 ? length.most_updates : length.epochs};
  std::vector<LogLine> lines;
  try {
    lines = io::read_metrics(train::RunFolder{folder}.metrics());
  } catch (const Error&) {
    return work;  // it has yet to start
  }
  return length.most_updates > 0 ? in_updates(lines, length, std::move(work))
                                 : in_epochs(lines, std::move(work));
}

std::optional<double> remaining_seconds(std::span<const Work> works, int at_once) {
  std::map<std::string, std::pair<double, double>> measured;  // seconds and what was done, by kind
  for (const Work& work : works) {
    measured[work.kind].first += work.seconds;
    measured[work.kind].second += work.done;
  }
  double seconds = 0;
  for (const Work& work : works) {
    if (left_of(work) == 0) continue;
    const auto& [spent, done] = measured[work.kind];
    if (done == 0) return std::nullopt;
    seconds += left_of(work) * spent / done;
  }
  return seconds / at_once;
}

double part_done(std::span<const Work> works) {
  double all = 0, left = 0;
  for (const Work& work : works) {
    all += std::max(work.total, work.done);
    left += left_of(work);
  }
  return all > 0 ? 1 - left / all : 1;
}

}  // namespace keel::report

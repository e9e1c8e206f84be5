#include "studies/statistics_tables.h"

#include <cmath>
#include <map>

#include "studies/sample.h"
#include "studies/summary.h"
#include "studies/verdicts.h"

namespace keel::study {

bool StatisticsName::is_there(const std::string& norm) const {
  const WatchedNorm watched = watched_norm(norm);
  return (watched.is_centred || !of_mean) && (watched.has_gradient || !of_gradient);
}

std::vector<double> values_in(const StatisticsRun& run, StatisticsField field, int third) {
  std::vector<double> values;
  const std::int64_t lines = std::ssize(run.lines);
  for (std::int64_t i = 0; i < lines; ++i) {
    if (3 * i / lines == third) values.push_back(run.lines[std::size_t(i)].found.*field);
  }
  return values;
}

std::vector<double> settled(const StatisticsRun& run, StatisticsField field) {
  std::vector<double> values = values_in(run, field, 1);
  const std::vector<double> last = values_in(run, field, 2);
  values.insert(values.end(), last.begin(), last.end());
  return values;
}

namespace {

// Adds the summary of one part of a training: "last" for the last third, "2" for the second epoch.
void add_summary(const StatisticsRun& run, const StatisticsName& what, const std::string& part,
                 const std::vector<double>& values, Table& table) {
  auto& cells = table.rows.emplace_back(
      std::vector<std::string>{run.task, run.label, run.site, run.seed, what.name, part});
  for (const double q : {0.5, 0.9, 0.99, 1.0}) {
    cells.push_back(fmt::format("{:.3g}", quantile(values, q)));
  }
  cells.push_back(fmt::format("{:.2f}", outlier_ratio(values)));
}

// The values of the updates that ended in each epoch.
std::map<std::int64_t, std::vector<double>> values_by_epoch(const StatisticsRun& run,
                                                            StatisticsField field) {
  std::map<std::int64_t, std::vector<double>> values;
  for (const StatisticsLine& line : run.lines) {
    values[std::int64_t(std::ceil(line.epoch))].push_back(line.found.*field);
  }
  return values;
}

Table summary_table(const std::string& title, const std::string& part) {
  return {title,
          {{"task", "norm", "site", "seed", "what", part, "median", "p90", "p99", "max",
            "p99 / median"}}};
}

Table thirds_table(const std::vector<StatisticsRun>& runs) {
  constexpr const char* kThirds[] = {"first", "second", "last"};
  Table table = summary_table(
      "by thirds of the steps; square is sigma^2, or psi^2 of pn_v and powernorm", "third");
  for (const StatisticsRun& run : runs) {
    for (const StatisticsName& what : kStatisticsNames) {
      if (!what.is_there(run.norm)) continue;
      for (int third = 0; third < 3; ++third) {
        add_summary(run, what, kThirds[third], values_in(run, what.field, third), table);
      }
    }
  }
  return table;
}

Table epochs_table(const std::vector<StatisticsRun>& runs) {
  Table table = summary_table("by epochs", "epoch");
  for (const StatisticsRun& run : runs) {
    for (const StatisticsName& what : kStatisticsNames) {
      if (!what.is_there(run.norm)) continue;
      for (const auto& [epoch, values] : values_by_epoch(run, what.field)) {
        add_summary(run, what, fmt::format("{}", epoch), values, table);
      }
    }
  }
  return table;
}

Table statistics_lines(const std::vector<StatisticsRun>& runs) {
  Table table{"every update that was looked at", {{"task", "norm", "step", "epoch"}}};
  for (const StatisticsName& what : kStatisticsNames) table.rows[0].push_back(what.name);
  table.rows[0].push_back("seed");
  for (const StatisticsRun& run : runs) {
    for (const StatisticsLine& line : run.lines) {
      auto& cells = table.rows.emplace_back(std::vector<std::string>{
          run.task, run.label, fmt::format("{}", line.step), fmt::format("{:.3f}", line.epoch)});
      for (const StatisticsName& what : kStatisticsNames) {
        const bool is_there = what.is_there(run.norm);
        cells.push_back(is_there ? fmt::format("{:.4g}", line.found.*what.field) : "");
      }
      cells.push_back(run.seed);
    }
  }
  return table;
}

}  // namespace

std::vector<Table> statistics_tables(const std::vector<StatisticsRun>& runs) {
  return {thirds_table(runs), epochs_table(runs), statistics_lines(runs)};
}

Drawing statistics_drawing(const std::vector<StatisticsRun>& runs, const StatisticsName& what) {
  Drawing drawing{
      what.name,
      {.title = "", .x_label = "update", .y_label = what.name, .log_y = true, .series = {}}};
  Sample sample;
  for (const StatisticsRun& run : runs) {
    if (!what.is_there(run.norm) || run.seed != runs.front().seed) continue;
    io::PlotSeries& series = drawing.plot.series.emplace_back();
    series.name = run.task + " " + run.label;
    sample.add(series.name, run.training, std::stoll(run.seed));
    for (const StatisticsLine& line : run.lines) {
      series.x.push_back(double(line.step));
      series.y.push_back(line.found.*what.field);
    }
  }
  drawing.plot.title =
      sample.caption(fmt::format("{}, divided by the number of features", what.words));
  return drawing;
}

}  // namespace keel::study

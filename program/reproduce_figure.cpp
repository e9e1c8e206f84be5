#include "program/reproduce_figure.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "frontend/train/run_log.h"
#include "program/metric_facts.h"

namespace keel::cli {
namespace {

// The runs of a column, in the order of the table's rows.
std::vector<report::Run> runs_of(const Plan& plan, std::size_t column) {
  std::vector<report::Run> runs;
  for (const std::vector<PlannedCell>& row : plan.cells) {
    for (const std::size_t place : row[column].trials) {
      const std::filesystem::path& folder = plan.trials[place].folder;
      const train::RunFolder files{folder};
      const bool has_begun =
          std::filesystem::exists(files.config()) && std::filesystem::exists(files.metrics());
      if (has_begun) runs.push_back(report::read_run(folder));
    }
  }
  return runs;
}

std::optional<report::Chart> chart_of(const study::PaperColumn& column,
                                      const std::vector<report::Run>& runs) {
  if (runs.empty()) return std::nullopt;
  const auto charts = report::charts_of(report::sections_of(runs)[0], metric_facts(runs[0]));
  const std::string instead = column.split == "train" ? "step" : "valid";
  for (const std::string& split : {column.split, instead}) {
    const auto found = std::ranges::find(charts, split + "-" + column.metric, &report::Chart::name);
    if (found == charts.end()) continue;
    report::Chart chart = *found;
    chart.name = column.name;
    // Where the column's own quantity was not measured on the way, the chart's title says which.
    if (split == column.split) chart.plot.title = column.title;
    chart.caption = column.title + ": " + chart.caption;
    return chart;
  }
  return std::nullopt;
}

}  // namespace

std::vector<report::Chart> figure_charts(const Plan& plan) {
  std::vector<report::Chart> charts;
  if (!plan.table.is_figure) return charts;
  for (std::size_t i = 0; i < plan.table.columns.size(); ++i) {
    auto chart = chart_of(plan.table.columns[i], runs_of(plan, i));
    if (chart) charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace keel::cli

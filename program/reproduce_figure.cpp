#include "program/reproduce_figure.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "frontend/report/curves.h"
#include "frontend/report/styles.h"
#include "frontend/train/run_log.h"
#include "program/metric_facts.h"
#include "program/reproduce_measure.h"

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

report::ChartOptions axis_of(const study::PaperTable& table) {
  const auto axis = table.along_updates ? report::ChartAxis::kUpdates : report::ChartAxis::kAuto;
  return {axis, table.log_x};
}

std::optional<report::Chart> chart_of(const study::PaperColumn& column,
                                      const std::vector<report::Run>& runs,
                                      const report::ChartOptions& options) {
  if (runs.empty()) return std::nullopt;
  const auto charts =
      report::charts_of(report::sections_of(runs)[0], metric_facts(runs[0]), options);
  const std::string instead = column.split == "train" ? "step" : "valid";
  for (const std::string& split : {column.split, instead}) {
    const auto found = std::ranges::find(charts, split + "-" + column.metric, &report::Chart::name);
    if (found == charts.end()) continue;
    report::Chart chart = *found;
    chart.name = column.name;
    // Where the column's own quantity was not measured on the way, the axis says which.
    if (split == column.split) chart.plot.y_label = column.title;
    chart.caption = chart.plot.about = column.title + ": " + chart.caption;
    return chart;
  }
  return std::nullopt;
}

// The values that a study measured in a norm's checkpoints: a line for each training.
std::vector<report::Line> measured_lines(const Plan& plan, const PlannedCell& cell,
                                         const study::PaperColumn& column) {
  std::vector<report::Line> lines;
  for (const std::size_t place : cell.trials) {
    report::Line line;
    for (const auto& [step, value] : measured_along(plan.trials[place].folder, column)) {
      line.x.push_back(double(step));
      line.y.push_back(column.offset + column.scale * value);
    }
    if (!line.x.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::optional<report::Chart> measured_chart(const Plan& plan, std::size_t place) {
  const study::PaperColumn& column = plan.table.columns[place];
  io::Plot plot{.title = "", .x_label = "update", .y_label = column.title, .series = {}};
  plot.log_x = plan.table.log_x;
  for (std::size_t row = 0; row < plan.cells.size(); ++row) {
    const auto lines = measured_lines(plan, plan.cells[row][place], column);
    if (lines.empty()) continue;
    const report::Band band = report::band_of(lines);
    plot.series.push_back({plan.table.rows[row].name, band.x, band.median, band.low, band.high});
  }
  if (plot.series.empty()) return std::nullopt;
  plot.about = fmt::format(
      "{}, measured by keel study {}; seeds {}; lines: medians over seeds, bands: least "
      "to largest",
      column.title, column.study, fmt::join(plan.seeds, ", "));
  report::set_norm_styles(plot);
  return report::Chart{column.name, plot.about, plot};
}

}  // namespace

std::vector<report::Chart> figure_charts(const Plan& plan) {
  std::vector<report::Chart> charts;
  if (!plan.table.is_figure) return charts;
  for (std::size_t i = 0; i < plan.table.columns.size(); ++i) {
    const study::PaperColumn& column = plan.table.columns[i];
    auto chart = column.study.empty() ? chart_of(column, runs_of(plan, i), axis_of(plan.table))
                                      : measured_chart(plan, i);
    if (chart) charts.push_back(std::move(*chart));
  }
  return charts;
}

}  // namespace keel::cli

// The cells of a plan beside the paper's, from the runs that are there.
#include "program/reproduce_compare.h"

#include <algorithm>
#include <charconv>

#include "frontend/report/figures.h"
#include "program/metric_facts.h"
#include "program/reproduce_figure.h"
#include "program/reproduce_measure.h"
#include "program/reproduce_remarks.h"

namespace keel::cli {
namespace {

// Whether more is better, as the run's model says of the metric; of a loss it is not.
bool more_is_better(const report::Run& run, const std::string& metric) {
  const std::vector<report::MetricFacts> facts = metric_facts(run);
  const auto fact = std::ranges::find(facts, metric, &report::MetricFacts::name);
  return fact != facts.end() && fact->higher_is_better;
}

// The number of a finished training in the paper's unit.
std::optional<double> value_of(const report::Run& run, const study::PaperColumn& column) {
  if (!column.study.empty()) {
    const auto measured = measured_value(run.folder, column);
    return measured ? std::optional(column.offset + column.scale * *measured) : std::nullopt;
  }
  const auto value = report::value_in(
      run, {column.split, column.metric, column.weights, "", more_is_better(run, column.metric)});
  return value ? std::optional(column.offset + column.scale * *value) : std::nullopt;
}

// Why a finished training has no number in a column.
std::string missing_text(const study::PaperColumn& column) {
  if (!column.study.empty()) return "not measured yet";
  if (column.split == "test") {
    return fmt::format("reports no {} of {} weights", column.metric, column.weights);
  }
  return fmt::format("reports no {} on the {} set", column.metric,
                     column.split == "valid" ? "validation" : "training");
}

// The state of a trial that is not finished, and the reason.
std::string unfinished_text(const Trial& trial) {
  return state_text(trial) + (trial.reason.empty() ? "" : ": " + trial.reason);
}

report::ComparedCell compared_cell(const Plan& plan, const ReproduceArgs& args,
                                   const study::PaperRow& row, const study::PaperColumn& column,
                                   const PlannedCell& planned) {
  report::ComparedCell cell;
  cell.mark = planned.mark;
  cell.note = planned.note;
  if (const auto paper = row.values.find(column.name); paper != row.values.end()) {
    cell.paper = paper->second;
  }
  std::vector<std::string> notes;
  std::vector<double> epochs, seconds;
  for (const std::size_t place : planned.trials) {
    const Trial& trial = plan.trials[place];
    cell.commands.push_back(shell_command(trial.start));
    if (!column.study.empty()) {
      cell.commands.push_back(shell_command(study_words(args, column, trial)));
    }
    if (trial.state != TrialState::kFinished) {
      if (cell.mark.empty()) cell.mark = state_text(trial);
      notes.push_back(fmt::format("seed {}: {}", trial.seed, unfinished_text(trial)));
      continue;
    }
    const report::Run run = report::read_run(trial.folder);
    if (const auto value = value_of(run, column)) {
      cell.ours.push_back(*value);
    } else {
      notes.push_back(fmt::format("seed {}: {}", trial.seed, missing_text(column)));
    }
    if (const auto done = report::epochs_of(run)) epochs.push_back(*done);
    if (run.seconds) seconds.push_back(*run.seconds);
  }
  if (!epochs.empty()) cell.epochs = report::spread_of(epochs).mean;
  if (!seconds.empty()) cell.seconds = report::spread_of(seconds).mean;
  if (!notes.empty()) cell.note = fmt::format("{}", fmt::join(notes, "; "));
  return cell;
}

std::optional<double> printed_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

// The improvement of one cell on another, seed by seed.
report::ComparedCell improvement(const report::ComparedCell& of, const report::ComparedCell& over,
                                 const study::PaperColumn& column, std::size_t seeds) {
  const double sign = column.less_is_better ? -1 : 1;
  report::ComparedCell cell;
  const auto a = printed_number(of.paper), b = printed_number(over.paper);
  if (a && b) cell.paper = fmt::format("{:.{}f}", sign * (*a - *b), column.digits);
  // Seeds are paired by their place, so that none may be missing.
  const bool complete = of.ours.size() == seeds && over.ours.size() == seeds;
  if (!complete || of.ours.empty()) {
    cell.mark = "-";
    return cell;
  }
  for (std::size_t i = 0; i < of.ours.size(); ++i) {
    cell.ours.push_back(sign * (of.ours[i] - over.ours[i]));
  }
  return cell;
}

}  // namespace

void add_differences(const study::PaperTable& table, std::size_t seeds,
                     report::Comparison& comparison) {
  for (const auto& [of, over] : table.differences) {
    const auto first = std::ranges::find(table.rows, of, &study::PaperRow::name),
               second = std::ranges::find(table.rows, over, &study::PaperRow::name);
    if (first == table.rows.end() || second == table.rows.end()) continue;
    const std::size_t i = std::size_t(first - table.rows.begin()),
                      j = std::size_t(second - table.rows.begin());
    std::vector<report::ComparedCell> cells;
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      cells.push_back(
          improvement(comparison.cells[i][c], comparison.cells[j][c], table.columns[c], seeds));
    }
    comparison.rows.push_back(fmt::format("{} - {}", of, over));
    comparison.cells.push_back(std::move(cells));
  }
}

void add_systems(const study::PaperTable& table, report::Comparison& comparison) {
  for (const study::PaperSystem& system : table.systems) {
    std::vector<report::ComparedCell> cells;
    bool has_values = false;
    for (const study::PaperColumn& column : table.columns) {
      report::ComparedCell& cell = cells.emplace_back();
      cell.mark = "-";
      cell.note = "of another paper, and not trained here";
      const auto value = system.values.find(column.name);
      if (value == system.values.end()) continue;
      cell.paper = value->second;
      has_values = true;
    }
    if (!has_values) continue;
    comparison.rows.push_back(system.name);
    comparison.cells.push_back(std::move(cells));
  }
}

report::Comparison compare(const Plan& plan, const ReproduceArgs& args) {
  report::Comparison comparison;
  comparison.title = title_of(plan, args);
  comparison.remarks = remarks_of(plan, args);
  for (const study::PaperColumn& column : plan.table.columns) {
    comparison.columns.push_back({column.name, headed(plan, args, column), column.digits});
  }
  for (std::size_t i = 0; i < plan.table.rows.size(); ++i) {
    const study::PaperRow& row = plan.table.rows[i];
    comparison.rows.push_back(row.name);
    auto& cells = comparison.cells.emplace_back();
    for (std::size_t j = 0; j < plan.table.columns.size(); ++j) {
      cells.push_back(compared_cell(plan, args, row, plan.table.columns[j], plan.cells[i][j]));
    }
  }
  add_standard_errors(plan.table, comparison);
  add_differences(plan.table, plan.seeds.size(), comparison);
  add_systems(plan.table, comparison);
  comparison.charts = figure_charts(plan);
  return comparison;
}

}  // namespace keel::cli

// The cells of a plan beside the paper's, from the runs that are there.
#include "program/reproduce_compare.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "frontend/report/figures.h"
#include "program/reproduce_choice.h"
#include "program/reproduce_figure.h"
#include "program/reproduce_measure.h"

namespace keel::cli {
namespace {

// The number of a finished training in the paper's unit.
std::optional<double> value_of(const report::Run& run, const study::PaperColumn& column) {
  if (!column.study.empty()) {
    const auto measured = measured_value(run.folder, column);
    return measured ? std::optional(column.offset + column.scale * *measured) : std::nullopt;
  }
  const report::Figure figure{column.split, column.metric, column.weights, "", false};
  const auto value = report::value_in(run, figure);
  return value ? std::optional(column.offset + column.scale * *value) : std::nullopt;
}

// What became of the trials of a cell that gave no number, each reason once.
void note_failures(report::ComparedCell& cell, const std::vector<const Trial*>& trials) {
  std::vector<std::string> notes;
  for (const Trial* trial : trials) {
    if (trial->state == TrialState::kFinished) continue;
    const std::string what = state_text(*trial);
    if (cell.mark.empty()) cell.mark = what;
    const std::string why = trial->reason.empty() ? "" : ": " + trial->reason;
    notes.push_back(fmt::format("seed {}: {}{}", trial->seed, what, why));
  }
  cell.note = fmt::format("{}", fmt::join(notes, "; "));
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
  std::vector<const Trial*> trials;
  std::vector<double> epochs, seconds;
  for (const std::size_t place : planned.trials) {
    const Trial& trial = plan.trials[place];
    trials.push_back(&trial);
    cell.commands.push_back(shell_command(trial.start));
    if (!column.study.empty()) {
      cell.commands.push_back(shell_command(study_words(args, column, trial.folder)));
    }
    if (trial.state != TrialState::kFinished) continue;
    const report::Run run = report::read_run(trial.folder);
    if (const auto value = value_of(run, column)) cell.ours.push_back(*value);
    if (const auto done = report::epochs_of(run)) epochs.push_back(*done);
    if (run.seconds) seconds.push_back(*run.seconds);
  }
  if (!epochs.empty()) cell.epochs = report::spread_of(epochs).mean;
  if (!seconds.empty()) cell.seconds = report::spread_of(seconds).mean;
  if (!trials.empty()) note_failures(cell, trials);
  return cell;
}

// How the recipes of this name stand to the paper's.
std::string recipe_text(const std::string& name) {
  if (name == "paper") return "paper";
  if (name == "release") return "release, as the authors' program trains";
  return name + (name == "short" ? ", the paper's with fewer epochs or a smaller network"
                                 : ", which is smaller than the paper's");
}

std::vector<std::string> remarks_of(const Plan& plan, const ReproduceArgs& args) {
  const bool builtin = args.run.data.empty() || args.run.data == "builtin";
  std::vector<std::string> remarks{
      "Paper: " + plan.table.source + ".", "Recipe: " + recipe_text(args.run.recipe) + ".",
      "Data: " +
          (builtin ? "built in; the paper's numbers are of other data." : args.run.data + "."),
      fmt::format("Seeds: {}.", fmt::join(plan.seeds, ", ")),
      "Program: keel " KEEL_VERSION ", backend " + plan.trials[0].settings.at("run.backend") + "."};
  if (!args.run.sets.empty()) {
    remarks.push_back(fmt::format("Settings: {}.", fmt::join(args.run.sets, ", ")));
  }
  return remarks;
}

// The source of the training rows of a column's finished trainings, its files relative to the
// folder of data; "" where no training says it.
std::string recorded_data(const Plan& plan, const study::PaperColumn& column,
                          const std::string& folder) {
  const std::string prefix = (std::filesystem::path(folder) / "").string();
  std::set<std::string> texts;
  for (const Trial& trial : plan.trials) {
    if (trial.run != column.run || trial.state != TrialState::kFinished) continue;
    std::string data = report::read_run(trial.folder).data;
    for (std::size_t at = 0; (at = data.find(prefix, at)) != std::string::npos;) {
      data.erase(at, prefix.size());
    }
    if (!data.empty()) texts.insert(data);
  }
  return texts.empty() ? "" : report::merged_text(texts);
}

// What a column's trainings here have as data, as far as it is known.
std::string data_text(const Plan& plan, const ReproduceArgs& args,
                      const study::PaperColumn& column) {
  const std::string folder = data_of(args, column);
  if (folder.empty()) return "built in";
  const std::string recorded = recorded_data(plan, column, folder);
  if (!recorded.empty()) return recorded;
  // "data/" has no file name of its own.
  return (std::filesystem::path(folder) / "").parent_path().filename().string();
}

// The column's title with its data: the paper's name of a column says nothing of these.
std::string headed(const Plan& plan, const ReproduceArgs& args, const study::PaperColumn& column) {
  return fmt::format("{} [data here: {}]", column.title, data_text(plan, args, column));
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

std::string state_text(const Trial& trial) {
  switch (trial.state) {
    case TrialState::kWaiting:
      return "to do";
    case TrialState::kRunning:
      return "running";
    case TrialState::kFinished:
      return "finished";
    case TrialState::kFailed:
    case TrialState::kInterrupted:
      return trial.mark;
  }
  return "?";
}

void add_differences(const study::PaperTable& table, std::size_t seeds,
                     report::Comparison& comparison) {
  for (const auto& [of, over] : table.differences) {
    const auto first = std::ranges::find(table.rows, of, &study::PaperRow::norm),
               second = std::ranges::find(table.rows, over, &study::PaperRow::norm);
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
      cell.note = "another network, which is not here";
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
  comparison.title = plan.table.name + ": " + plan.table.about;
  comparison.remarks = remarks_of(plan, args);
  for (const study::PaperColumn& column : plan.table.columns) {
    comparison.columns.push_back({column.name, headed(plan, args, column), column.digits});
  }
  for (std::size_t i = 0; i < plan.table.rows.size(); ++i) {
    const study::PaperRow& row = plan.table.rows[i];
    comparison.rows.push_back(row.norm);
    auto& cells = comparison.cells.emplace_back();
    for (std::size_t j = 0; j < plan.table.columns.size(); ++j) {
      cells.push_back(compared_cell(plan, args, row, plan.table.columns[j], plan.cells[i][j]));
    }
  }
  add_differences(plan.table, plan.seeds.size(), comparison);
  add_systems(plan.table, comparison);
  comparison.charts = figure_charts(plan);
  return comparison;
}

}  // namespace keel::cli

// keel reproduce
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/message.h"
#include "frontend/io/plot.h"
#include "frontend/report/comparison.h"
#include "frontend/report/figures.h"
#include "program/common.h"
#include "program/reproduce_figure.h"
#include "program/reproduce_measure.h"
#include "program/reproduce_plan.h"
#include "program/reproduce_queue.h"

namespace keel::cli {
namespace {

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
  return name + (name == "short" ? ", the paper's with fewer epochs"
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

report::Comparison compare(const Plan& plan, const ReproduceArgs& args) {
  report::Comparison comparison;
  comparison.title = plan.table.name + ": " + plan.table.about;
  comparison.remarks = remarks_of(plan, args);
  for (const study::PaperColumn& column : plan.table.columns) {
    comparison.columns.push_back({column.name, column.title, column.digits});
  }
  for (std::size_t i = 0; i < plan.table.rows.size(); ++i) {
    const study::PaperRow& row = plan.table.rows[i];
    comparison.rows.push_back(row.norm);
    auto& cells = comparison.cells.emplace_back();
    for (std::size_t j = 0; j < plan.table.columns.size(); ++j) {
      cells.push_back(compared_cell(plan, args, row, plan.table.columns[j], plan.cells[i][j]));
    }
  }
  comparison.charts = figure_charts(plan);
  return comparison;
}

// The studies that measure a training, each once.
std::vector<std::string> studies_of(const Plan& plan, const ReproduceArgs& args,
                                    const Trial& trial) {
  std::vector<std::string> commands;
  for (const study::PaperColumn& column : plan.table.columns) {
    if (column.study.empty() || column.run != trial.run) continue;
    const std::string command = shell_command(study_words(args, column, trial.folder));
    if (std::ranges::find(commands, command) == commands.end()) commands.push_back(command);
  }
  return commands;
}

void print_plan(const Plan& plan, const ReproduceArgs& args) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text;
  for (std::size_t i = 0; i < plan.table.columns.size(); ++i) {
    const PlannedCell& cell = plan.cells[0][i];
    if (cell.mark.empty()) continue;
    text += fmt::format("# {}: {}: {}\n", plan.table.columns[i].name, cell.mark, cell.note);
    list.push_back(
        {{"column", plan.table.columns[i].name}, {"mark", cell.mark}, {"note", cell.note}});
  }
  for (const Trial& trial : plan.trials) {
    const std::string command = shell_command(trial.start);
    text += fmt::format("# {}: {}\n{}\n", trial.name, state_text(trial), command);
    list.push_back({{"training", trial.name}, {"state", state_text(trial)}, {"command", command}});
    for (const std::string& study : studies_of(plan, args, trial)) {
      text += study + "\n";
      list.back()["studies"].push_back(study);
    }
  }
  args.run.json ? print_json(list) : print(text);
}

std::vector<std::string> write_files(const Plan& plan, const report::Comparison& comparison) {
  std::vector<std::string> paths;
  const auto write = [&](const std::string& suffix, const std::string& content) {
    paths.push_back(plan.folder / (plan.table.name + suffix));
    io::write_file_atomically(paths.back(), content);
  };
  write(".md", report::markdown_of(comparison, plan.table.name));
  write(".csv", report::csv_of(comparison));
  write(".html", report::html_of(comparison));
  for (const report::Chart& chart : comparison.charts) {
    paths.push_back(plan.folder / report::chart_file(plan.table.name, chart));
    io::write_plot(paths.back(), chart.plot);
  }
  return paths;
}

// Cells without a number of ours say why below the table.
std::string notes_text(const report::Comparison& comparison) {
  std::string text;
  for (std::size_t i = 0; i < comparison.rows.size(); ++i) {
    for (std::size_t j = 0; j < comparison.columns.size(); ++j) {
      const std::string& note = comparison.cells[i][j].note;
      if (note.empty()) continue;
      text += fmt::format("{}, {}: {}\n", comparison.rows[i], comparison.columns[j].name, note);
    }
  }
  return text;
}

void show_result(const report::Comparison& comparison, const std::vector<std::string>& files,
                 bool json) {
  if (json) {
    nlohmann::ordered_json value = report::json_of(comparison);
    value["files"] = files;
    return print_json(value);
  }
  std::string text = comparison.title + "\n";
  for (const std::string& remark : comparison.remarks) text += remark + "\n";
  text += "\n" + table_text(report::compared_rows(comparison)) + "\n" + notes_text(comparison);
  print(text + fmt::format("written: {}\n", fmt::join(files, " ")));
}

}  // namespace

int run_reproduce(ReproduceArgs args) {
  if (args.out.empty()) args.out = "runs/" + args.table;
  Plan plan = make_plan(args);
  if (args.plan) {
    print_plan(plan, args);
    return 0;
  }
  int signal = 0;
  if (args.as_is) {
    check(std::filesystem::is_directory(plan.folder), ErrorKind::kIo,
          "{}: --as-is: expected a folder that keel reproduce has trained in, got none",
          plan.folder.string());
  } else {
    make_backend(args.run);  // rather than that every training finds it missing
    signal = run_trials(plan, args.jobs);
    if (signal == 0) measure_trials(plan, args);
  }
  const report::Comparison comparison = compare(plan, args);
  show_result(comparison, write_files(plan, comparison), args.run.json);
  if (signal != 0) {
    io::say("interrupted; the same command goes on");
    return 128 + signal;
  }
  const bool all = std::ranges::all_of(
      plan.trials, [](const Trial& trial) { return trial.state == TrialState::kFinished; });
  return all || args.as_is ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace keel::cli

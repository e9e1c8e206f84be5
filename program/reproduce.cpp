// keel reproduce
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/chart_formats.h"
#include "frontend/io/message.h"
#include "frontend/io/plot.h"
#include "frontend/report/comparison.h"
#include "program/common.h"
#include "program/reproduce_all.h"
#include "program/reproduce_compare.h"
#include "program/reproduce_measure.h"
#include "program/reproduce_plan.h"
#include "program/reproduce_study.h"
#include "program/trial_queue.h"

namespace keel::cli {
namespace {

// The studies that measure a training, each once.
std::vector<std::string> studies_of(const Plan& plan, const ReproduceArgs& args,
                                    const Trial& trial) {
  std::vector<std::string> commands;
  for (const study::PaperColumn& column : plan.table.columns) {
    if (column.study.empty() || column.run != trial.run) continue;
    const std::string command = shell_command(study_words(args, column, trial));
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

std::vector<std::string> write_files(const Plan& plan, const report::Comparison& comparison,
                                     const io::ChartFormats& formats) {
  std::vector<std::string> paths;
  const auto write = [&](const std::string& suffix, const std::string& content) {
    paths.push_back(plan.folder / (plan.table.name + suffix));
    io::write_file_atomically(paths.back(), content);
  };
  write(".md", report::markdown_of(comparison, plan.table.name));
  write(".csv", report::csv_of(comparison));
  write(".html", report::html_of(comparison));
  for (const report::Chart& chart : comparison.charts) {
    const std::filesystem::path svg = plan.folder / report::chart_file(plan.table.name, chart);
    io::write_plot(svg, chart.plot);
    paths.push_back(svg);
    for (const auto& made : io::write_formats(svg, formats)) paths.push_back(made);
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
  io::expect_converter(args.formats);  // before anything is trained
  if (args.table == "all") return run_reproduce_all(args);
  if (const study::StudiedFigure* figure = find_studied_figure(args.table)) {
    return run_reproduce_study(*figure, args);
  }
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
    signal = run_trials(plan.trials, {plan.folder, "keel reproduce", args.jobs});
    if (signal == 0) measure_trials(plan, args);
  }
  const report::Comparison comparison = compare(plan, args);
  show_result(comparison, write_files(plan, comparison, args.formats), args.run.json);
  if (signal != 0) {
    io::say("interrupted; the same command goes on");
    return 128 + signal;
  }
  const bool all = std::ranges::all_of(
      plan.trials, [](const Trial& trial) { return trial.state == TrialState::kFinished; });
  return all || args.as_is ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace keel::cli

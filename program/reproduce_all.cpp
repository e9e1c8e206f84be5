#include "program/reproduce_all.h"

#include <algorithm>
#include <filesystem>

#include "frontend/io/atomic_file.h"
#include "frontend/io/chart_formats.h"
#include "frontend/io/message.h"
#include "frontend/io/plot.h"
#include "program/common.h"
#include "program/reproduce_choice.h"
#include "program/reproduce_compare.h"
#include "program/reproduce_measure.h"
#include "program/reproduce_study.h"
#include "program/trial_queue.h"

namespace keel::cli {
namespace {

// A table of which nothing can be trained: only the paper's values, and the reason.
report::Comparison without_trials(const study::PaperTable& table, const std::string& why) {
  report::Comparison comparison;
  comparison.title = table.name + ": " + table.about;
  comparison.remarks = {"Paper: " + table.source + ".", "Not run: " + why + "."};
  for (const study::PaperColumn& column : table.columns) {
    comparison.columns.push_back({column.name, column.title, column.digits});
  }
  for (const study::PaperRow& row : table.rows) {
    comparison.rows.push_back(row.name);
    auto& cells = comparison.cells.emplace_back();
    for (const study::PaperColumn& column : table.columns) {
      report::ComparedCell& cell = cells.emplace_back();
      cell.mark = "not run";
      if (const auto value = row.values.find(column.name); value != row.values.end()) {
        cell.paper = value->second;
      }
    }
  }
  add_differences(table, 0, comparison);
  add_systems(table, comparison);
  return comparison;
}

struct Outcome {
  report::Comparison comparison;
  bool complete = false;
  int signal = 0;
};

Outcome outcome_of(const ReproduceArgs& args, const study::PaperTable& table) {
  try {
    Plan plan = make_plan(args);
    int signal = 0;
    if (!args.as_is) {
      signal = run_trials(plan.trials, {plan.folder, "keel reproduce", args.jobs});
      if (signal == 0) measure_trials(plan, args);
    }
    const bool complete = std::ranges::all_of(
        plan.trials, [](const Trial& t) { return t.state == TrialState::kFinished; });
    return {compare(plan, args), complete, signal};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kBadInput) throw;
    return {without_trials(table, error.what()), false, 0};
  }
}

std::string anchor(const std::string& name) { return "chart-" + name; }

void write_page(const std::filesystem::path& folder, std::span<const report::Comparison> all,
                std::span<const std::string> names, const io::ChartFormats& formats) {
  std::string text = "# Every table and figure\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    text += "\n" + report::markdown_of(all[i], anchor(names[i]));
    for (const report::Chart& chart : all[i].charts) {
      const std::filesystem::path svg = folder / report::chart_file(anchor(names[i]), chart);
      io::write_plot(svg, chart.plot);
      io::write_formats(svg, formats);
    }
  }
  io::write_file_atomically(folder / "all.md", text);
  io::write_file_atomically(folder / "all.html", report::html_of("Every table and figure", all));
}

}  // namespace

int run_reproduce_all(ReproduceArgs args) {
  check(args.tasks.empty() && args.norms.empty() && !args.plan, ErrorKind::kUsage,
        "reproduce all: expected no --tasks, --norms or --plan, which are of one table");
  expect_consecutive(args.seeds);
  const std::filesystem::path folder = args.out.empty() ? "runs/all" : args.out;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  check(!error, ErrorKind::kIo, "{}: {}", folder.string(), error.message());
  if (!args.as_is) make_backend(args.run);  // rather than that every training finds it missing
  std::vector<report::Comparison> all;
  std::vector<std::string> names;
  bool complete = true;
  int signal = 0;
  for (const study::PaperTable& table : study::paper_tables()) {
    ReproduceArgs one = args;
    one.table = table.name;
    one.out = folder / table.name;
    one.as_is = args.as_is || signal != 0;  // what comes after an interruption is shown as it is
    Outcome outcome = outcome_of(one, table);
    if (signal == 0) signal = outcome.signal;
    complete &= outcome.complete;
    names.push_back(table.name);
    all.push_back(std::move(outcome.comparison));
  }
  for (const study::StudiedFigure& figure : study::studied_figures()) {
    ReproduceArgs one = args;
    one.out = folder / figure.name;
    one.as_is = args.as_is || signal != 0;
    StudiedOutcome outcome = studied_outcome(figure, one);
    complete &= outcome.complete;
    names.push_back(figure.name);
    all.push_back(std::move(outcome.comparison));
  }
  write_page(folder, all, names, args.formats);
  print(fmt::format("written: {} {}\n", (folder / "all.md").string(),
                    (folder / "all.html").string()));
  if (signal != 0) {
    io::say("interrupted; the same command goes on");
    return 128 + signal;
  }
  return complete || args.as_is ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace keel::cli

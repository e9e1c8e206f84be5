#include "program/reproduce_remarks.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "frontend/report/spread.h"
#include "program/reproduce_choice.h"

namespace keel::cli {
namespace {

// How a recipe of this name stands to the paper's.
std::string recipe_text(const std::string& name) {
  if (name == "release") return "release, which has a published program's settings";
  if (name == "short") return "short, the paper's with fewer epochs or a smaller network";
  if (name == "laptop") return "laptop, which is smaller than the paper's";
  return name;
}

// "topic_bigram by laptop, which is smaller than the paper's" of each training whose task calls the
// recipe otherwise than it was asked for, with the settings that come on top of it.
std::vector<std::string> other_recipes(const Plan& plan, const std::string& asked) {
  std::vector<std::string> texts;
  for (const study::PaperColumn& column : plan.table.columns) {
    const auto recipe = column.recipes.find(asked);
    if (recipe == column.recipes.end() || recipe->second == asked) continue;
    std::string text = fmt::format("{} by {}", column.run, recipe_text(recipe->second));
    if (const auto more = column.settings.find(asked); more != column.settings.end()) {
      text += fmt::format(", with {}", fmt::join(more->second, " "));
    }
    if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
  }
  return texts;
}

std::string recipe_remark(const Plan& plan, const std::string& asked) {
  std::string text = "Recipe: " + recipe_text(asked);
  for (const std::string& other : other_recipes(plan, asked)) text += "; " + other;
  return text + ".";
}

std::string data_remark(const Plan& plan) {
  std::set<std::string> folders;
  for (const Trial& trial : plan.trials) {
    if (!trial.data.empty()) folders.insert(trial.data);
  }
  if (folders.empty()) return "Data: built in; the paper's numbers are of other data.";
  return fmt::format("Data: {}.", fmt::join(folders, ", "));
}

// Where a column's trainings read their data; none: they take built-in data.
std::set<std::string> folders_of(const Plan& plan, const ReproduceArgs& args,
                                 const study::PaperColumn& column) {
  std::set<std::string> folders;
  bool has_trials = false;
  for (const Trial& trial : plan.trials) {
    if (trial.run != column.run) continue;
    has_trials = true;
    if (!trial.data.empty()) folders.insert(trial.data);
  }
  const std::string asked = data_of(args, column);
  if (!has_trials && !asked.empty()) folders.insert(asked);
  return folders;
}

// The source of the training rows of a column's finished trainings, its files relative to the
// folder of data; "" where no training says it.
std::string recorded_data(const Plan& plan, const study::PaperColumn& column) {
  std::set<std::string> texts;
  for (const Trial& trial : plan.trials) {
    if (trial.run != column.run || trial.state != TrialState::kFinished) continue;
    if (trial.data.empty()) continue;
    const std::string prefix = (std::filesystem::path(trial.data) / "").string();
    std::string data = report::read_run(trial.folder).data;
    for (std::size_t at = 0; (at = data.find(prefix, at)) != std::string::npos;) {
      data.erase(at, prefix.size());
    }
    if (!data.empty()) texts.insert(data);
  }
  return texts.empty() ? "" : report::merged_text(texts);
}

// "built-in digits" of finished trainings of a column on built-in data.
std::string name_of_builtin(const Plan& plan, const study::PaperColumn& column) {
  std::set<std::string> names;
  for (const Trial& trial : plan.trials) {
    const bool counts = trial.run == column.run && trial.state == TrialState::kFinished;
    if (counts && trial.data.empty())
      names.insert(report::data_name(report::read_run(trial.folder)));
  }
  return names.empty() ? "built in" : fmt::format("{}", fmt::join(names, ", "));
}

// The data of a column's trainings here, as far as they are known.
std::string data_text(const Plan& plan, const ReproduceArgs& args,
                      const study::PaperColumn& column) {
  const std::set<std::string> folders = folders_of(plan, args, column);
  if (folders.empty()) return name_of_builtin(plan, column);
  const std::string recorded = recorded_data(plan, column);
  if (!recorded.empty()) return recorded;
  std::set<std::string> names;
  for (const std::string& folder : folders) {
    // "data/" has no file name of its own.
    names.insert((std::filesystem::path(folder) / "").parent_path().filename().string());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// The values of all rows in a column.
std::vector<double> values_in(const report::Comparison& comparison, std::size_t column) {
  std::vector<double> values;
  for (const std::vector<report::ComparedCell>& cells : comparison.cells) {
    values.insert(values.end(), cells[column].ours.begin(), cells[column].ours.end());
  }
  return values;
}

}  // namespace

std::vector<std::string> remarks_of(const Plan& plan, const ReproduceArgs& args) {
  std::vector<std::string> remarks{
      "Paper: " + plan.table.source + ".", recipe_remark(plan, args.run.recipe), data_remark(plan),
      fmt::format("Seeds: {}.", fmt::join(plan.seeds, ", ")),
      "Program: keel " KEEL_VERSION ", backend " + plan.trials[0].settings.at("run.backend") + "."};
  if (!args.run.sets.empty()) {
    remarks.push_back(fmt::format("Settings: {}.", fmt::join(args.run.sets, ", ")));
  }
  return remarks;
}

std::string title_of(const Plan& plan, const ReproduceArgs& args) {
  const std::string title = plan.table.name + ": " + plan.table.about;
  std::set<std::string> names;
  for (const study::PaperColumn& column : plan.table.columns) {
    if (!folders_of(plan, args, column).empty()) return title;
    names.insert(name_of_builtin(plan, column));
  }
  names.erase("built in");
  return fmt::format("{}; here on {}", title,
                     names.empty() ? "built-in data" : fmt::format("{}", fmt::join(names, ", ")));
}

std::string headed(const Plan& plan, const ReproduceArgs& args, const study::PaperColumn& column) {
  return fmt::format("{} [data here: {}]", column.title, data_text(plan, args, column));
}

void add_standard_errors(const study::PaperTable& table, report::Comparison& comparison) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const study::PaperColumn& column = table.columns[i];
    const std::vector<double> values = values_in(comparison, i);
    if (column.tested == 0 || values.empty()) continue;
    const double right = report::spread_of(values).mean;  // %
    const double error = std::sqrt(right * (100 - right) / double(column.tested));
    texts.push_back(fmt::format("{} {:.2f} (of {} rows)", column.name, error, column.tested));
  }
  if (texts.empty()) return;
  comparison.remarks.push_back(fmt::format(
      "Binomial standard error of one training, in points: {}.", fmt::join(texts, ", ")));
}

}  // namespace keel::cli

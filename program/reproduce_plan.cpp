#include "program/reproduce_plan.h"

#include <algorithm>
#include <map>

#include "frontend/train/run_log.h"
#include "program/common.h"
#include "program/reproduce_choice.h"
#include "program/reproduce_measure.h"

namespace keel::cli {
namespace {

// The arguments of keel train for a cell, except norm and seed.
RunArgs arguments_of(const ReproduceArgs& args, const study::PaperColumn& column,
                     const study::PaperRow& row = {}) {
  RunArgs run = args.run;
  run.model = column.task;
  run.recipe = column.recipes.at(args.run.recipe);
  run.threads = threads_of_each(args.jobs, args.run.threads);
  run.data = data_of(args, column);
  run.sets = settings_for(row, column, args.run.recipe);
  run.sets.insert(run.sets.end(), args.run.sets.begin(), args.run.sets.end());
  return run;
}

// Reads all of the data, for a file that is cut short is none.
void expect_data(const RunArgs& run) {
  const train::Job job = make_job(run);
  for (const task::Split split : {task::Split::kTrain, task::Split::kValid, task::Split::kTest}) {
    job.splits().stream(split, {.batch = job.train().batch});
  }
}

// Why no cell of the column can be trained, or an empty mark.
PlannedCell obstacle(const ReproduceArgs& args, const study::PaperColumn& column) {
  if (!is_in_zoo(column)) return {"no such task yet", column.task, {}};
  if (!column.recipes.contains(args.run.recipe)) {
    return {"no such recipe", args.run.recipe, {}};
  }
  if (args.as_is) return {};
  if (!column.study.empty()) {
    const std::string missing = missing_for_study(args, column);
    if (!missing.empty()) return {"no data", missing, {}};
  }
  if (data_of(args, column).empty()) return {};
  try {
    expect_data(arguments_of(args, column));
    return {};
  } catch (const Error& error) {
    const bool is_of_data = error.kind() == ErrorKind::kIo || error.kind() == ErrorKind::kBadInput;
    if (!is_of_data) throw;
    return {"no data", error.what(), {}};
  }
}

// Replaces the data that are asked for by those of the run in a folder, where there is one.
void keep_data(RunArgs& run, const std::filesystem::path& folder) {
  if (!std::filesystem::exists(train::RunFolder{folder}.config())) return;
  run.data = data_in(report::read_config(folder));
  std::erase_if(run.sets, [](const std::string& set) { return set.starts_with("data.source="); });
}

Trial make_trial(const ReproduceArgs& args, const study::PaperColumn& column,
                 const study::PaperRow& row, std::int64_t seed) {
  RunArgs run = arguments_of(args, column, row);
  run.norm = norm_spec(row, column, args.run.recipe);
  for (const std::string& key : column.seeds) run.sets.push_back(fmt::format("{}={}", key, seed));
  Trial trial;
  trial.name = fmt::format("{} on {}, seed {}", row.name, column.run, seed);
  trial.seed = seed;
  trial.run = column.run;
  trial.folder = std::filesystem::path(args.out) /
                 fmt::format("{}-{}-{}-seed{}", column.run, row.name, args.run.recipe, seed);
  if (args.as_is) keep_data(run, trial.folder);
  set_commands(trial, run, fmt::format("{}", seed));
  run.sets.push_back(fmt::format("train.seed={}", seed));
  set_recipe(trial, make_config(run), run);
  return trial;
}

// The place of a trial that is in the plan once, however many columns are numbers of it.
std::size_t place_of(Plan& plan, Trial trial) {
  const auto found = std::ranges::find(plan.trials, trial.folder, &Trial::folder);
  if (found != plan.trials.end()) {
    check(found->start == trial.start, ErrorKind::kInternal,
          "{}: columns of one run expect different commands", trial.name);
    return static_cast<std::size_t>(found - plan.trials.begin());
  }
  look_into_folder(trial);
  plan.trials.push_back(std::move(trial));
  return plan.trials.size() - 1;
}

std::vector<PlannedCell> obstacles_of(const ReproduceArgs& args, const study::PaperTable& table) {
  std::vector<PlannedCell> obstacles;
  for (const study::PaperColumn& column : table.columns) {
    obstacles.push_back(obstacle(args, column));
  }
  return obstacles;
}

void plan_row(Plan& plan, const ReproduceArgs& args, const study::PaperRow& row,
              std::vector<PlannedCell> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!cells[i].mark.empty()) continue;
    for (const std::int64_t seed : plan.seeds) {
      cells[i].trials.push_back(place_of(plan, make_trial(args, plan.table.columns[i], row, seed)));
    }
  }
  plan.cells.push_back(std::move(cells));
}

std::string obstacles_text(const study::PaperTable& table,
                           const std::vector<PlannedCell>& obstacles) {
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < obstacles.size(); ++i) {
    const PlannedCell& cell = obstacles[i];
    reasons.push_back(fmt::format("{}: {}: {}", table.columns[i].name, cell.mark, cell.note));
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

}  // namespace

Plan make_plan(const ReproduceArgs& args) {
  Plan plan{chosen_table(args), seeds_of(args.seeds), args.out, {}, {}};
  const std::vector<PlannedCell> obstacles = obstacles_of(args, plan.table);
  for (const study::PaperRow& row : plan.table.rows) plan_row(plan, args, row, obstacles);
  check(!plan.trials.empty(), ErrorKind::kBadInput, "{}: nothing to train: {}", plan.table.name,
        obstacles_text(plan.table, obstacles));
  return plan;
}

}  // namespace keel::cli

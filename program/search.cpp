#include "program/search.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "frontend/io/atomic_file.h"
#include "frontend/io/message.h"
#include "program/common.h"
#include "program/search_folder.h"
#include "program/search_grid.h"
#include "program/search_result.h"
#include "program/small_data.h"
#include "program/trial_queue.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

namespace fs = std::filesystem;

// Names the recipe, and adds the settings that the data ask for: as a single training would find
// them, but the same at all points.
void settle_for_data(RunArgs& run, const std::vector<GridPoint>& points) {
  RunArgs first = points.front().run;
  const std::size_t before = first.sets.size();
  job_for_data(first, /*says=*/true);
  run.sets.insert(run.sets.end(), first.sets.begin() + std::ptrdiff_t(before), first.sets.end());
  run.recipe = recipe_name(run);
}

std::vector<Trial> trials_of(const std::vector<GridPoint>& points, const TrainArgs& args) {
  std::vector<Trial> trials;
  for (const GridPoint& point : points) {
    RunArgs run = point.run;
    run.threads = threads_of_each(args.jobs, args.run.threads);
    Trial& trial = trials.emplace_back();
    trial.name = point.name;
    trial.run = run.model;
    trial.folder = fs::path(args.out) / point.folder;
    set_commands(trial, run, "");
    set_recipe(trial, point.config, run);
    look_into_folder(trial);
  }
  return trials;
}

std::string folder_of_search(const RunArgs& run) {
  return fmt::format("runs/{}-{}-search", run.model, fs::path(recipe_name(run)).stem().string());
}

// The options that are short for settings, as settings.
void spell_out(TrainArgs& args) {
  const auto spell = [&](const char* option, const std::string& value, const std::string& key) {
    expect_one(option, value, key, args.run.sets);
    if (!value.empty()) args.run.sets.push_back(key + "=" + value);
  };
  spell("--seed", args.seed, "train.seed");
  spell("--on-nonfinite", args.on_nonfinite, "train.on_nonfinite");
}

// A recipe that was chosen before more values were asked for.
void remove_outdated(const fs::path& recipe, const std::vector<Trial>& trials) {
  const bool waits = std::ranges::count(trials, TrialState::kWaiting, &Trial::state) > 0;
  std::error_code error;
  if (waits) fs::remove(recipe, error);
  check(!error, ErrorKind::kIo, "{}: cannot remove it: {}", recipe.string(), error.message());
}

int exit_code(const SearchResult& result, int signal) {
  constexpr int kSignalled = 128;
  if (signal != 0) return kSignalled + signal;
  if (result.all_diverged) return static_cast<int>(ErrorKind::kDiverged);
  return result.chosen ? 0 : static_cast<int>(ErrorKind::kCheckFailed);
}

}  // namespace

void add_search_options(CLI::App& app, TrainArgs& args) {
  CLI::Option* search =
      app.add_option("--search", args.searches,
                     "train with each of these values of a key of the recipe, or\n"
                     "of an option norm.NAME of the norm, and choose the best;\n"
                     "several keys make a grid");
  search->type_name("KEY=V,V,...")->allow_extra_args(false);
  for (const char* other : {"--resume", "--reduce", "--carrier"}) {
    search->excludes(app.get_option(other));
  }
  app.add_option("--by", args.by,
                 "with --search: the metric on the validation rows (default: the task's first)")
      ->needs(search);
  app.add_option("--jobs", args.jobs, "with --search: trainings at once")
      ->check(CLI::Range(1, 1024))
      ->needs(search)
      ->capture_default_str();
}

int run_search(TrainArgs args, int processes) {
  check(processes == 1, ErrorKind::kUsage,
        "train --search: expected one process, which starts others, got {}", processes);
  check(!args.run.model.empty(), ErrorKind::kUsage,
        "train: expected a task (see keel list tasks) with --search");
  spell_out(args);
  const std::vector<SearchKey> keys = read_searches(args);
  draft_config(args.run);  // an error of the recipe itself names no point
  std::vector<GridPoint> points = grid_of(args.run, keys);
  const task::MetricInfo metric = search_metric(points, args.by);
  make_backend(args.run);  // rather than that every training finds it missing
  if (args.out.empty()) args.out = folder_of_search(args.run);
  settle_for_data(args.run, points);
  points = grid_of(args.run, keys);
  settle_search_folder(args.out, keys, args.run);
  std::vector<Trial> trials = trials_of(points, args);
  const fs::path recipe = chosen_recipe(args.out);
  remove_outdated(recipe, trials);
  const int signal = run_trials(trials, {args.out, "keel train --search", args.jobs, args.quiet});
  const SearchResult result = search_result(keys, metric, trials);
  if (result.chosen) io::write_file_atomically(recipe, points[*result.chosen].config.to_toml());
  args.run.json ? print_json(search_json(result, points, trials, recipe))
                : print(search_text(result, points, trials, recipe));
  if (signal != 0) io::say("interrupted; the same command goes on");
  if (result.all_diverged) io::say("every setting diverged: none is chosen");
  return exit_code(result, signal);
}

}  // namespace keel::cli

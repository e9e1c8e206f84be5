// The command lines of `keel report` and `keel reproduce`.
#include <memory>

#include "program/subcommand.h"

namespace keel::cli {

void add_report(Command command) {
  CLI::App* app = command.app.add_subcommand("report", "compare runs");
  auto args = std::make_shared<ReportArgs>();
  app->add_option("runs", args->runs, "folders of runs, finished or not")->required();
  app->add_option("--out", args->out, "folder for report.html, its charts as SVG, and CSV")
      ->capture_default_str();
  add_choice(*app, "--axis", args->axis, {"auto", "updates", "epochs"},
             "horizontal axis of the charts; auto: epochs if each run has completed one");
  app->add_flag("--log-x", args->log_x, "charts have a logarithmic horizontal axis");
  add_formats(*app, args->formats);
  app->add_flag("--json", args->json, "machine-readable output on stdout");
  app->footer(
      "runs that differ only in train.seed and data.seed form a group, with a median and range in\n"
      "charts and a mean and standard deviation in tables; its name says how it differs. For\n"
      "groups that differ from one of --norm none only in the norm, a table says after how many\n"
      "updates each reaches the best values of that one\n"
      "\n"
      "examples:\n"
      "  keel report runs/ln runs/bn\n"
      "  keel report runs/* --out report --json\n"
      "  keel report runs/captions-* --axis updates    like figure 1 of Ba et al.\n"
      "  keel report runs/writing-* --axis updates --log-x    like figure 5");
  app->callback([args, command] { command.code = run_report(*args); });
}

void add_reproduce(Command command) {
  CLI::App* app = command.app.add_subcommand("reproduce", "train the cells of a paper's table");
  auto args = std::make_shared<ReproduceArgs>();
  args->run.recipe = "paper";
  app->add_option("table", args->table, "a table (see keel list tables), or all")->required();
  app->add_option("--tasks", args->tasks, "columns or their tasks, separated by commas")
      ->delimiter(',');
  app->add_option("--norms", args->norms, "rows, separated by commas")->delimiter(',');
  app->add_option("--seeds", args->seeds,
                  "number of seeds, or seeds separated by commas; consecutive ones for a study")
      ->capture_default_str();
  add_choice(*app, "--recipe", args->run.recipe, {"paper", "release", "short", "laptop"},
             "settings of the paper, of a published program, for less time, or for a laptop");
  app->add_option("--data", args->run.data, "builtin, or a folder with the real data");
  app->add_option("--set", args->run.sets, "override a value of all recipes: section.key=value")
      ->type_name("KEY=VALUE");
  app->add_option("--jobs", args->jobs, "trainings at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--out", args->out, "folder of runs and results (default runs/TABLE)");
  auto* plan = app->add_flag("--plan", args->plan, "print the commands and run nothing");
  app->add_flag("--as-is", args->as_is, "train nothing, and write the table of the runs that exist")
      ->excludes(plan);
  add_formats(*app, args->formats, nullptr, plan);
  add_backend_options(*app, args->run);
  app->footer(
      "each cell is trained once per seed in its own folder, with its output in train.log.\n"
      "When repeated, the command skips trainings that have finished or diverged, and\n"
      "continues those that were interrupted. The results are TABLE.md, TABLE.csv and\n"
      "TABLE.html, with the curves of a figure. Exit code 1: a training failed\n"
      "\n"
      "examples:\n"
      "  keel reproduce xu-table4 --plan\n"
      "  keel reproduce xu-table4 --tasks mnist --recipe laptop --seeds 1 --data DIR\n"
      "  keel reproduce ba-figure6 --recipe laptop --seeds 4,7 --jobs 2 --out runs/figure6");
  app->callback([args, command, app] {
    args->names_recipe = app->count("--recipe") > 0;
    command.code = run_reproduce(*args);
  });
}

}  // namespace keel::cli

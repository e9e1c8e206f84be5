// The command line of `keel study`.
#include <memory>

#include "program/subcommand.h"
#include "studies/study.h"

namespace keel::cli {
namespace {

// The names of the studies of which `which` is true, as lines.
std::string names_of(bool study::Study::*which) {
  std::string names;
  for (const study::Study& s : study::studies()) {
    if (s.*which) names += (names.empty() ? "  " : ",\n  ") + s.name;
  }
  return names;
}

void add_task_options(CLI::App& app, StudyArgs& args) {
  app.add_option("--task", args.run.model, "a task (see keel list tasks)");
  app.add_option("--recipe", args.run.recipe, "a recipe of the task; default: laptop");
  app.add_option("--norm", args.norms, "a norm instead of the study's; may be given several times")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--data", args.run.data, "builtin, or a folder with the real data");
  app.add_option("--site", args.site,
                 "statistics: the norm to observe, such as fc2/norm; "
                 "singular-values: the table, such as source/table");
  app.add_option("--run", args.runs,
                 "a trained run or checkpoint to use; may be given several times")
      ->allow_extra_args(false)
      ->take_all();
  app.add_option("--vectors", args.vectors,
                 "transfer: word vectors in word2vec's text form (NAME.bin: binary), for words "
                 "that are not in the training data");
  app.add_option("--steps", args.steps, "updates of every training; 0: the study's number")
      ->capture_default_str();
  app.add_option("--set", args.run.sets,
                 "override a value of the recipe, or of runs: section.key=value")
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE");
}

}  // namespace

void add_study(Command command) {
  CLI::App* app = command.app.add_subcommand("study", "compute and check a claim of the papers");
  auto args = std::make_shared<StudyArgs>();
  app->add_option("study", args->name, "a study (see keel list studies)")->required();
  app->add_option("--seed", args->seed, "the first seed")->capture_default_str();
  app->add_option("--seeds", args->seeds, "how many seeds; 0: as many as the source reports")
      ->capture_default_str();
  CLI::Option* output = app->add_option("--output", args->output,
                                        "folder for the tables as CSV and the plots as SVG");
  add_formats(*app, args->formats, output);
  add_task_options(*app, *args);
  add_backend_options(*app, args->run);
  app->get_option("--backend")
      ->description("for studies that do not compute in float64: " +
                    app->get_option("--backend")->get_description());
  app->footer(
      "exact, always on reference in float64:\n" + names_of(&study::Study::exact) +
      "\n\nnot exact, also on reference:\n" + names_of(&study::Study::in_float64) +
      "\n\nStudies of a task (only these take --task, --recipe, --norm, --data and --steps):\n" +
      names_of(&study::Study::takes_task) +
      "\n\nOn one core, transfer takes 2 to 3 minutes a run for MR, CR, SUBJ, MPQA and SICK with\n"
      "vectors of 256 numbers, half an hour with 2,400, and the time to compute the vectors"
      "\n\nexamples:\n"
      "  keel study theorem1\n"
      "  keel study mini-layernorm --seeds 1 --json\n"
      "  keel study convergence --task text_classifier --norm none --norm adanorm "
      "--output curves\n"
      "  keel study transfer --run runs/novels --data DIR --vectors vectors.txt");
  app->callback([args, command] { command.code = run_study(*args); });
}

}  // namespace keel::cli

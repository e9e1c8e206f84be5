// The command line of `keel compare`.
#include <memory>

#include "program/subcommand.h"

namespace keel::cli {
namespace {

constexpr const char* kCompareFooter = R"(every node that runs is given the same inputs on each
backend (--mode isolated), or the results of its own backend (chained), and compared with the
float64 reference within what rounding may add (docs/numerics.md). Exit code 1: a node
differs by more

examples:
  keel compare mnist_cnn
  keel compare text_classifier --set train.batch=512 --norm powernorm --rank
  keel compare norm batchnorm --node-steps 3
  keel compare op matmul --case large --json
  keel compare --all-ops
  keel compare mnist_cnn --record traces/gpu      # on one machine
  keel compare mnist_cnn --against traces/gpu     # on another
  keel compare mnist_mlp --unfused --names        # what another program's arrays are called
  keel compare mnist_mlp --unfused --against torch.npz --strict
  keel compare mnist_mlp --steps 100 --perturb 1ulp --svg distances.svg
  keel compare mnist_mlp --inject node=fc1/norm/layer_norm,kind=scale,by=1.01)";

void add_choices_of_run(CLI::App& app, RunArgs& args) {
  args.usual_recipe = "laptop";
  app.add_option("--recipe", args.recipe, "a recipe of the task, or the path of a .toml file")
      ->default_str(args.usual_recipe);
  app.add_option("--data", args.data, "builtin, or a folder with the real data");
  app.add_option("--norm", args.norm, "shorthand for --set model.norm=...");
  app.add_option(
      "--compute", args.compute,
      "f32 or bf16: for a task shorthand for --set train.compute=...; for an op the type "
      "of the factors of products, for a norm that of x, dy, y and dx");
  app.add_option("--set", args.sets, "override a value of the recipe: section.key=value")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--threads", args.threads, "threads of the backends; 0: all")
      ->check(kThreads)
      ->default_str("0");
  add_gpu(app, args);
  app.add_flag("--json", args.json, "machine-readable output on stdout");
}

void add_outputs(CLI::App& app, CompareArgs& args) {
  app.add_flag("--rank", args.rank, "all nodes and columns, those nearest to their bounds first");
  app.add_flag("--strict", args.strict,
               "exit code 1 also if a node was not compared, was refused, or is suspect");
  app.add_option("--junit", args.junit, "a file for the verdicts as JUnit XML");
  app.add_option("--html", args.html,
                 "a file for a page with the errors of all nodes as a picture");
  CLI::Option* record = app.add_option(
      "--record", args.record, "a folder for a trace of this walk; continues the one in it");
  app.add_option("--against", args.against,
                 "also compare a trace, recorded here or elsewhere, or an .npz with another "
                 "program's arrays by node")
      ->excludes(record);
  app.add_option("--export", args.start,
                 "an .npz file for weights, states, constants and inputs of the first step");
  app.add_flag("--names", args.names,
               "print the names of a step's arrays in an .npz, and compare nothing");
  app.add_option("--dump", args.dump, "a folder for the tensors of nodes that diverge, as .npz");
}

}  // namespace

void add_compare(Command command) {
  CLI::App* app = command.app.add_subcommand("compare", "compare backends node by node");
  auto args = std::make_shared<CompareArgs>();
  app->add_option("subject", args->subject, "a task, or: op NAME, norm VARIANT")->expected(0, -1);
  app->add_flag("--all-ops", args->all_ops, "every op and every norm");
  app->add_option("--case", args->input_case,
                  "for an op small or large, for a norm a case such as tokens or 'hard rows'; "
                  "default: all, but small for a trace or an --export of an op");
  app->add_option("--backends", args->backends,
                  "the backends to compare with reference, separated by commas; default: all")
      ->delimiter(',');
  add_choice(*app, "--mode", args->mode, {"isolated", "chained"}, "the inputs of a node");
  app->add_option("--node-steps", args->node_steps, "training steps to compare node by node")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  CLI::Option* steps =
      app->add_option("--steps", args->steps, "compare this many whole steps of training")
          ->check(CLI::Range(1, 1000000));
  app->add_option(
         "--perturb", args->perturb,
         "1ulp, with --steps: also train twins whose weights differ by so much, and say whether "
         "rounding explains the differences")
      ->check(CLI::IsMember({"1ulp"}))
      ->needs(steps);
  app->add_option("--svg", args->svg, "with --steps: a file for a picture of the distances")
      ->needs(steps);
  app->add_option("--only", args->only, "only nodes of this path, or below it");
  CLI::Option* unfused =
      app->add_flag("--unfused", args->unfused, "the graph as it was built, without the passes");
  app->add_flag("--as-run", args->as_run,
                "a task's graph as the backend runs it, with the passes that it asks for; needs "
                "--backends with one name")
      ->excludes(unfused)
      ->excludes(steps);
  app->add_option("--inject", args->faults,
                  "plant a fault: node=PATH,kind=sign|scale|swap|stale|drop|offset[,by=X]"
                  "[,port=N][,step=N][,backend=NAME]")
      ->allow_extra_args(false);
  add_outputs(*app, *args);
  add_choices_of_run(*app, args->run);
  app->footer(kCompareFooter);
  app->callback([args, command] { command.code = run_compare(*args); });
}

}  // namespace keel::cli

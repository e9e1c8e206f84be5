#include "frontend/cli/options.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "backends/backends.h"
#include "frontend/cli/commands.h"
#include "frontend/study/study.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

constexpr const char* kFooter = R"(exit codes:
  0 ok   1 a check failed   2 usage   3 bad input   4 I/O   5 memory   6 diverged
  7 backend missing   130/143 interrupted, after a clean save

examples:
  keel train mnist_mlp --recipe laptop                    train on built-in digits
  keel train mnist_mlp --data DIR --norm batchnorm        real MNIST, another norm
  keel train mnist_mlp --set train.lr=3e-4 --out runs/a   another learning rate
  keel train --resume runs/a                              go on where it stopped
  keel eval runs/a --data DIR
  keel list norms
  keel inspect graph mnist_mlp
  keel bench step mnist_mlp
  keel norm layernorm --in case.npz --out result.npz)";

// A subcommand adds itself to the program. When it is chosen it leaves its exit code in `code`.
struct Command {
  CLI::App& app;
  int& code;
};

void add_backend(CLI::App& app, RunArgs& args) {
  app.add_option("--backend", args.backend, "onednn, cuda, reference or null (keel list backends)")
      ->default_str(default_backend());
  app.add_flag("--tf32", args.tf32, "cuda: products may round their factors to 10 bits");
  app.add_flag("--json", args.json, "machine-readable output on stdout");
}

// More threads than any machine has processors; oneTBB dies of very many.
const CLI::Range kThreads(0, 4096);

void add_backend_options(CLI::App& app, RunArgs& args) {
  add_backend(app, args);
  app.add_option("--threads", args.threads, "threads of the backend; 0: all")
      ->check(kThreads)
      ->default_str("0");
}

// For options whose empty value would read as not given.
std::string is_not_empty(const std::string& value) {
  return value.empty() ? "expected a value, got ''" : "";
}

CLI::Option* add_run_options(CLI::App& app, RunArgs& args, const std::string& default_recipe) {
  args.recipe = default_recipe;
  CLI::Option* model = app.add_option("model", args.model, "the model (see keel list models)");
  app.add_option("--recipe", args.recipe, "a recipe of the model, or the path of a .toml file")
      ->default_str(default_recipe);
  app.add_option("--data", args.data, "builtin, or a folder with the real data");
  app.add_option("--norm", args.norm, "shorthand for --set model.norm=...")->check(is_not_empty);
  app.add_option("--set", args.sets, "override a value of the recipe: section.key=value")
      ->type_name("KEY=VALUE");
  add_backend_options(app, args);
  return model;
}

void add_choice(CLI::App& app, const std::string& name, std::string& value,
                const std::vector<std::string>& choices, const std::string& about) {
  app.add_option(name, value, about)->check(CLI::IsMember(choices))->capture_default_str();
}

void add_train(Command command) {
  CLI::App* app = command.app.add_subcommand("train", "train a model, or go on with a run");
  auto args = std::make_shared<TrainArgs>();
  add_run_options(*app, args->run, "laptop");
  app->add_option("--out", args->out, "folder of the run (default runs/MODEL-RECIPE)");
  CLI::Option* resume =
      app->add_option("--resume", args->resume, "go on with the run in this folder");
  app->add_option("--seed", args->seed, "shorthand for --set train.seed=...");
  // What a checkpoint decides.
  for (const char* name : {"--out", "--seed", "--recipe", "--norm"}) {
    resume->excludes(app->get_option(name));
  }
  app->add_flag("--quiet", args->quiet, "no progress");
  app->footer(
      "examples:\n"
      "  keel train mnist_mlp\n"
      "  keel train mnist_mlp --recipe paper --data DIR --norm batchnorm --out runs/bn\n"
      "  keel train mnist_cnn --set train.epochs=1 --set train.batch=64\n"
      "  keel train --resume runs/bn");
  app->callback([args, command] { command.code = run_train(*args); });
}

void add_eval(Command command) {
  CLI::App* app = command.app.add_subcommand("eval", "evaluate a checkpoint");
  auto args = std::make_shared<EvalArgs>();
  app->add_option("checkpoint", args->path, "a checkpoint file, or a run's folder (its best)")
      ->required();
  app->add_option("--data", args->run.data, "builtin, or a folder; default: as in training");
  add_choice(*app, "--split", args->split, {"train", "valid", "test"}, "which rows");
  add_backend_options(*app, args->run);
  app->footer(
      "examples:\n  keel eval runs/mnist_mlp-laptop\n  keel eval runs/a --split valid --json");
  app->callback([args, command] { command.code = run_eval(*args); });
}

void add_list(Command command) {
  CLI::App* app = command.app.add_subcommand("list", "what there is");
  auto args = std::make_shared<ListArgs>();
  app->add_option("what", args->what, "models, norms, ops, backends, recipes or studies")
      ->required()
      ->check(CLI::IsMember({"models", "norms", "ops", "backends", "recipes", "studies"}));
  app->add_option("name", args->norm, "of norms: this one alone");
  app->add_flag("--json", args->json, "machine-readable output on stdout");
  app->footer(
      "examples:\n"
      "  keel list norms\n"
      "  keel list norms layernorm\n"
      "  keel list backends --json");
  app->callback([args, command] { command.code = run_list(*args); });
}

void add_inspect(Command command) {
  CLI::App* app = command.app.add_subcommand("inspect", "look into a graph, checkpoint or data");
  app->require_subcommand(1);
  CLI::App* graph = app->add_subcommand("graph", "the graph of a model, and its memory plan");
  auto args = std::make_shared<GraphArgs>();
  add_run_options(*graph, args->run, "paper")->required();
  add_choice(*graph, "--mode", args->mode, {"step", "evaluate"}, "which graph");
  add_choice(*graph, "--stage", args->stage, {"before", "after", "plan"},
             "before or after the passes, or the memory plan");
  graph->footer(
      "examples:\n"
      "  keel inspect graph mnist_mlp --stage plan\n"
      "  keel inspect graph mnist_cnn --norm batchnorm --mode evaluate --json");
  graph->callback([args, command] { command.code = run_inspect_graph(*args); });
  const auto add_file = [&](const char* name, const char* about, int (*run)(const FileArgs&)) {
    CLI::App* sub = app->add_subcommand(name, about);
    auto args = std::make_shared<FileArgs>();
    sub->add_option("path", args->path, "the file")->required();
    sub->add_flag("--json", args->json, "machine-readable output on stdout");
    sub->callback([args, run, command] { command.code = run(*args); });
    return sub;
  };
  add_file("checkpoint", "names, types and metadata of a safetensors file", run_inspect_checkpoint)
      ->footer(
          "examples:\n  keel inspect checkpoint runs/a/checkpoints/best.safetensors\n"
          "  keel inspect checkpoint runs/a/checkpoints/best.safetensors --json");
  add_file("data", "an IDX file, or a folder with MNIST", run_inspect_data)
      ->footer(
          "examples:\n  keel inspect data DIR/mnist\n"
          "  keel inspect data DIR/mnist/train-images-idx3-ubyte.gz --json");
  app->footer(
      "examples:\n"
      "  keel inspect graph mnist_mlp --stage plan\n"
      "  keel inspect checkpoint runs/a/checkpoints/best.safetensors\n"
      "  keel inspect data DIR/mnist");
}

void add_rounds(CLI::App& app, int& rounds) {
  app.add_option("--rounds", rounds, "timed repetitions")
      ->check(CLI::Range(3, 1000000))
      ->capture_default_str();
}

void add_peer(CLI::App& app, PeerArgs& peer, const std::vector<std::string>& modes) {
  CLI::Option* name = app.add_option("--peer", peer.name,
                                     "measured beside it: torch, in a child process (KEEL_PYTHON)")
                          ->check(CLI::IsMember({"torch"}));
  app.add_option("--peer-modes", peer.modes,
                 "how it runs, separated by commas; default: usual, on cuda all")
      ->delimiter(',')
      ->check(CLI::IsMember(modes))
      ->needs(name);
}

void add_bench_norms(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("norms", "norms beside a plain copy of the same bytes");
  auto args = std::make_shared<NormBenchArgs>();
  app->add_option("norms", args->norms, "name or name{option=value,...}; default: all");
  app->add_option("--shapes", args->shapes, "ROWSxWIDTH or NxCxHxW, separated by commas")
      ->delimiter(',');
  app->add_option("--threads", args->threads,
                  "one or more counts, separated by commas; 0: all; default: 1,2")
      ->delimiter(',')
      ->check(kThreads);
  add_peer(*app, args->peer, kNormPeerModes);
  add_rounds(*app, args->rounds);
  add_backend(*app, args->run);
  app->footer(
      "examples:\n"
      "  keel bench norms layernorm 'batchnorm{keep=0.99}' --shapes 4096x512 --threads 2\n"
      "  KEEL_PYTHON=/usr/bin/python3 keel bench norms --peer torch --json");
  app->callback([args, command] { command.code = run_bench_norms(*args); });
}

void add_bench_accuracy(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("accuracy", "norms beside the float64 reference");
  auto args = std::make_shared<AccuracyArgs>();
  app->add_option("norms", args->norms,
                  "name or name{option=value,...}; default: all but those below");
  app->add_option("--case", args->at, "this case alone, as the table names it");
  app->add_flag("--thorough", args->thorough, "nearly every combination; takes minutes")
      ->excludes(app->get_option("--case"));
  add_backend_options(*app, args->run);
  app->footer(
      "left out: none; noisybatchnorm, recurrentbatchnorm and sequencebatchnorm, whose kernels "
      "are\n"
      "batchnorm's; weightnorm, a norm of weights. Masks and evaluation are not run.\n"
      "\n"
      "examples:\n"
      "  keel bench accuracy\n"
      "  keel bench accuracy batchnorm 'layernorm{eps_outside=true}' --thorough --json\n"
      "  keel bench accuracy pn_v --case columns,groups=3,n=4097,mean=1e6,gain=false");
  app->callback([args, command] { command.code = run_bench_accuracy(*args); });
}

void add_bench(Command command) {
  CLI::App* app = command.app.add_subcommand("bench", "measure speed and accuracy");
  app->require_subcommand(1);
  const auto add = [&](const char* name, const char* about, int (*run)(const BenchArgs&)) {
    CLI::App* sub = app->add_subcommand(name, about);
    auto args = std::make_shared<BenchArgs>();
    add_run_options(*sub, args->run, "paper")->required();
    add_rounds(*sub, args->rounds);
    if (run == run_bench_step) add_peer(*sub, args->peer, kStepPeerModes);
    sub->add_flag("--profile", args->profile, "also the time of every node");
    sub->callback([args, run, command] { command.code = run(*args); });
    return sub;
  };
  add("step", "a training step beside its matrix products and one pass of its optimizer",
      run_bench_step)
      ->footer(
          "examples:\n"
          "  keel bench step mnist_mlp --threads 2 --profile\n"
          "  KEEL_PYTHON=/usr/bin/python3 keel bench step mnist_cnn --peer torch --json");
  add("overhead", "the run loop itself, on the null backend", run_bench_overhead)
      ->footer("examples:\n  keel bench overhead mnist_mlp");
  add_bench_norms(*app, command);
  add_bench_accuracy(*app, command);
  app->footer(
      "examples:\n"
      "  keel bench step mnist_mlp --threads 2 --profile\n"
      "  keel bench overhead mnist_mlp\n"
      "  keel bench norms layernorm batchnorm --shapes 4096x512 --threads 2\n"
      "  keel bench accuracy\n"
      "  keel bench accuracy batchnorm 'layernorm{eps_outside=true}' --thorough --json\n"
      "  keel bench accuracy pn_v --case columns,groups=3,n=4097,mean=1e6,gain=false\n"
      "  KEEL_PYTHON=/usr/bin/python3 keel bench norms --peer torch --json");
}

void add_norm(Command command) {
  CLI::App* app = command.app.add_subcommand("norm", "a normalization layer on your own arrays");
  auto args = std::make_shared<NormArgs>();
  app->add_option("norm", args->norm, "the variant (see keel list norms), as NAME{KEY=VALUE,...}")
      ->required();
  app->add_option("--option", args->options, "one more option of the variant")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--in", args->in,
                  "an .npz file with x, or s0.x, s1.x, ...; dy, mask, gain, bias, state.*")
      ->required();
  app->add_option("--out", args->out, "the .npz file to write: y, dx, dgain, state.*")->required();
  add_choice(*app, "--dtype", args->dtype, {"f32", "f64"},
             "the type of all numbers; f64: with --backend reference");
  add_choice(*app, "--mode", args->mode, {"train", "eval", "probe"},
             "statistics of x, of the state, or of x without a new state");
  app->add_option("--seed", args->seed, "of noise, which is drawn anew every step")
      ->capture_default_str();
  add_backend_options(*app, args->run);
  app->footer(
      "arrays, by the rank of x:\n"
      "  x           (n, c, h, w): images, for every norm; any other rank: tokens, features last.\n"
      "              Norms of a row normalize all c h w of an image, or the features of a token.\n"
      "              weightnorm: a weight (units, ...)\n"
      "  gain, bias  (features) or (c); (c, h, w) of norms of a row on images; scalenorm: gain "
      "(1);\n"
      "              weightnorm: gain (units)\n"
      "  mask        u1 or bool, the shape of x but its last axis, 0 for padding; for norms over "
      "the\n"
      "              batch and instancenorm, not for images\n"
      "  s<i>.*      calls of one layer, which carry its state on; recurrentbatchnorm is at time\n"
      "              step 0 in all of them (state.t0.*)\n"
      "  f4, f8, i4, i8 (within 32 bits), u1 or bool; results are in --dtype\n"
      "\n"
      "examples:\n"
      "  keel norm layernorm --in case.npz --out result.npz\n"
      "  keel norm batchnorm --option keep=0.99 --mode eval --in case.npz --out result.npz\n"
      "  keel norm batchnorm --backend reference --dtype f64 --in case.npz --out result.npz");
  app->callback([args, command] { command.code = run_norm(*args); });
}

void add_study(Command command) {
  CLI::App* app =
      command.app.add_subcommand("study", "a claim of the papers, computed and checked");
  auto args = std::make_shared<StudyArgs>();
  app->add_option("study", args->name, "which (see keel list studies)")->required();
  app->add_option("--seed", args->seed, "the first seed")->capture_default_str();
  app->add_option("--seeds", args->seeds, "how many seeds; 0: as many as the source reports")
      ->capture_default_str();
  add_backend_options(*app, args->run);
  app->get_option("--backend")
      ->description("of studies that are not exact: " +
                    app->get_option("--backend")->get_description());
  std::string exact;
  for (const study::Study& s : study::studies()) {
    if (s.exact) exact += (exact.empty() ? "  " : ",\n  ") + s.name;
  }
  app->footer("exact, on reference in float64 whatever the default of --backend is:\n" + exact +
              "\n\nexamples:\n"
              "  keel study theorem1\n"
              "  keel study mini-layernorm --seeds 1 --json");
  app->callback([args, command] { command.code = run_study(*args); });
}

}  // namespace

int parse_and_run(int argc, char** argv) {
  CLI::App app("keel: train and compare networks with every normalization, on CPUs and GPUs");
  app.footer(kFooter);
  app.set_version_flag("--version", "keel " KEEL_VERSION);
  app.require_subcommand(1);
  int code = 0;
  const Command command{app, code};
  add_train(command);
  add_eval(command);
  add_list(command);
  add_inspect(command);
  add_bench(command);
  add_norm(command);
  add_study(command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    check(error.get_exit_code() == 0, ErrorKind::kUsage, "{}", error.what());
    app.exit(error);  // prints the help
    check(bool(std::cout.flush()), ErrorKind::kIo, "cannot write to standard output");
  }
  return code;
}

}  // namespace keel::cli

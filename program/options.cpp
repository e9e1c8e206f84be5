#include "program/options.h"

#include <memory>
#include <sstream>

#include "program/commands.h"
#include "program/common.h"
#include "program/search.h"
#include "program/subcommand.h"
#include "program/suggestions.h"
#include "src/core/error.h"

namespace keel::cli {
namespace {

constexpr const char* kFooter = R"(exit codes:
  0 ok   1 a check failed   2 usage   3 bad input   4 I/O   5 memory   6 diverged
  7 backend missing   70 a bug of keel
  129/130/143 interrupted, after a clean save   141 stdout was closed

examples:
  keel train mnist_mlp --recipe laptop                    train on built-in digits
  keel train mnist_mlp --data DIR --norm batchnorm        real MNIST, another norm
  keel train mnist_mlp --set train.lr=3e-4 --out runs/a   another learning rate
  keel train --resume runs/a                              continue where it stopped
  keel train text_classifier --recipe paper --data DIR    sentences, with a Transformer
  keel eval runs/a --data DIR
  keel report runs/a runs/b                               compare runs
  keel reproduce xu-table4 --data DIR                     a table of a paper
  keel predict runs/a < sentences.txt
  keel list norms
  keel inspect graph mnist_mlp
  keel bench step mnist_mlp
  keel norm layernorm --in case.npz --out result.npz
  keel compare mnist_cnn                                  compare backends node by node)";

void add_train(Command command) {
  CLI::App* app = command.app.add_subcommand("train", "train a task, or continue a run");
  auto args = std::make_shared<TrainArgs>();
  add_run_options(*app, args->run, "laptop");
  app->add_option("--out", args->out, "folder of the run (default runs/TASK-RECIPE)");
  CLI::Option* resume =
      app->add_option("--resume", args->resume, "continue the run in this folder");
  app->add_option("--seed", args->seed, "shorthand for --set train.seed=...");
  app->add_option("--on-nonfinite", args->on_nonfinite,
                  "stop, skip the update, or rollback to the last checkpoint, when a loss or\n"
                  "gradient is not finite; shorthand for --set train.on_nonfinite=...");
  app->add_option("--observe", args->observe,
                  "write the values that a study uses while training, as KIND or\n"
                  "KIND{key=value,...} (see keel list observers); may be given several times;\n"
                  "shorthand for --set train.observe=...")
      ->allow_extra_args(false)
      ->take_all();
  add_choice(*app, "--reduce", args->reduce, {"fixed", "fast"},
             "how several processes sum: fixed gives the bits of one process, fast is the\n"
             "all-reduce of their library");
  app->add_option("--at-once", args->at_once,
                  "number of shards in memory at once, if norms over the batch share their\n"
                  "statistics; changes no byte of the run (default: the shards of one\n"
                  "micro-batch)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  add_choice(*app, "--carrier", args->carrier, {"mpi", "nccl"},
             "transport of large values between processes: mpi, through the host, or nccl,\n"
             "from GPU to GPU");
  // Options that the checkpoint decides.
  for (const char* name : {"--out", "--seed", "--recipe", "--norm"}) {
    resume->excludes(app->get_option(name));
  }
  app->add_flag("--quiet", args->quiet, "no progress");
  add_search_options(*app, *args);
  app->footer(
      "examples:\n"
      "  keel train mnist_mlp\n"
      "  keel train mnist_mlp --recipe paper --data DIR --norm batchnorm --out runs/bn\n"
      "  keel train mnist_cnn --set train.epochs=1 --set train.batch=64\n"
      "  keel train --resume runs/bn\n"
      "  keel train --resume runs/bn --on-nonfinite skip\n"
      "  keel train mnist_mlp --search train.lr=1e-4,3e-4,1e-3 --by error --out runs/rates\n"
      "  mpirun -n 4 keel train mnist_mlp --set train.shards=8 --threads 1");
  app->callback([args, command] { command.code = run_train(*args); });
}

void add_eval(Command command) {
  CLI::App* app = command.app.add_subcommand("eval", "evaluate a checkpoint");
  auto args = std::make_shared<EvalArgs>();
  app->add_option("checkpoint", args->path, "a checkpoint file, or a run's folder (its best)")
      ->required();
  app->add_option("--data", args->run.data, "builtin, or a folder; default: as in training");
  add_choice(*app, "--split", args->split, {"train", "valid", "test"}, "the split to evaluate");
  add_choice(
      *app, "--statistics", args->statistics, {"running", "pass"},
      "for batchnorm, its variants and pn_v: the checkpoint's running averages, or the means of\n"
      "a pass over the training rows");
  app->add_option(
      "--output", args->output,
      "a file for the results: dependency_parser writes the parsed treebank, translation\n"
      "the translations, a classifier a line for each row, separated by tabs: its number\n"
      "from 0, the true label, the predicted label and its probability");
  app->add_option("--set", args->run.sets, "override model.NAME=VALUE or data.NAME=VALUE")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  add_backend_options(*app, args->run);
  app->footer(
      "examples:\n  keel eval runs/mnist_mlp-laptop\n  keel eval runs/a --split valid --json\n"
      "  keel eval runs/translation-multi30k --set model.beam=4 --output translations\n"
      "  keel eval runs/dependency_parser-paper --output parsed.conllu");
  app->callback([args, command] { command.code = run_eval(*args); });
}

// A language model continues a text.
void add_continuation_options(CLI::App& app, PredictArgs& args) {
  CLI::Option* prompt =
      app.add_option("--prompt", args.prompt, "language models: the text to continue")
          ->excludes("files", "--text", "--scores", "--n-best");
  CLI::Option* options[] = {
      app.add_option("--tokens", args.tokens, "tokens to add to the prompt"),
      app.add_option("--temperature", args.sample.temperature,
                     "sampling temperature; 0 takes the likeliest token"),
      app.add_option("--top-k", args.sample.top_k, "sample from the K likeliest tokens; 0: all"),
      app.add_option("--top-p", args.sample.top_p,
                     "sample from the likeliest tokens that together have this probability"),
      app.add_option("--seed", args.seed, "seed of the sampling")};
  for (CLI::Option* option : options) option->needs(prompt)->capture_default_str();
}

void add_answer_options(CLI::App& app, PredictArgs& args) {
  CLI::Option* scores = app.add_flag(
      "--scores", args.scores,
      "print the score of a search, or the probability of a class, and a tab before each\n"
      "answer");
  app.add_option("--n-best", args.n_best,
                 "up to this many answers of a search, or classes, for each line, in Moses' form:\n"
                 "NUMBER ||| ANSWER ||| logp= LOG-PROBABILITY ||| SCORE; lines count from 0")
      ->check(CLI::Range(1, 1000))
      ->excludes(scores);
}

void add_predict(Command command) {
  CLI::App* app = command.app.add_subcommand("predict", "run a trained model on text or images");
  auto args = std::make_shared<PredictArgs>();
  app->add_option("checkpoint", args->path, "a checkpoint file, or a run's folder (its best)")
      ->required();
  app->add_option("files", args->files,
                  "pictures (PNG, JPEG, PGM or PPM), or folders of pictures, to classify");
  add_answer_options(*app, *args);
  app->add_option("--text", args->texts,
                  "a line, instead of standard input; may be given several times")
      ->allow_extra_args(false)
      ->excludes(app->get_option("files"));
  app->add_flag("--tokenized", args->tokenized,
                "translation: lines and answers are tokens, whatever the training text was; the\n"
                "same as --set model.tokenized=true");
  add_continuation_options(*app, *args);
  app->add_option("--output", args->output,
                  "a file for the answers, instead of standard output; several SVG or PNG answers\n"
                  "get one file each: hand-1.svg, hand-2.svg, ... for hand.svg");
  app->add_option("--set", args->run.sets, "override model.NAME=VALUE")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--bias", args->bias, "handwriting: the same as --set model.bias=...");
  app->add_option("--vectors", args->vectors,
                  "skip_thoughts: word vectors in word2vec's text form, or its binary one in\n"
                  "NAME.bin, for words that are not in the training data; the same as\n"
                  "--set model.vectors=...");
  add_backend_options(*app, args->run);
  app->footer(
      "reads lines from standard input and writes an answer for each, in order:\n"
      "text_classifier: the name of each line's class; for RT and SST5 its number\n"
      "translation: the translation of each line, found by beam search, as text if it was\n"
      "             trained on text; its score is the logarithm of its probability /\n"
      "             length^length_penalty\n"
      "dependency_parser: trees in CoNLL rows; a sentence is given in such rows, or in a line as\n"
      "                   word_TAG word_TAG ...\n"
      "order_embeddings: the embedding of each caption\n"
      "attentive_reader: the answer to each question on its passage\n"
      "skip_thoughts: the vector of each sentence\n"
      "handwriting: an SVG of each line in handwriting\n"
      "draw: a PNG with the number of samples that a line gives, glimpse by glimpse\n"
      "cifar_resnet20, cifar_vgg, mnist_mlp, mnist_cnn: each picture's file, a tab, and the name "
      "of\n"
      "               its class; without FILES the lines are names of files\n"
      "char_lm, word_lm: continue the text of --prompt, token by token\n\n"
      "examples:\n"
      "  echo 'a moving , funny film' | keel predict runs/text_classifier-paper\n"
      "  echo 'Dogs_NNS bark_VBP ._.' | keel predict runs/dependency_parser-paper\n"
      "  echo 's1 s7 s3' | keel predict runs/translation-laptop --n-best 4\n"
      "  keel predict runs/handwriting-paper --text 'by hand' --bias 0.5 --output hand.svg\n"
      "  keel predict runs/char_lm-wiki6 --prompt 'The ' --tokens 500 --temperature 0.8\n"
      "  keel predict runs/cifar_resnet20-laptop --scores cat.png photos/\n"
      "  keel predict runs/a --json < sentences.txt");
  app->callback([args, command] { command.code = run_predict(*args); });
}

void add_list(Command command) {
  CLI::App* app = command.app.add_subcommand("list", "list tasks, norms, keys and more");
  auto args = std::make_shared<ListArgs>();
  std::vector<std::string> what{"models"};
  for (const auto& [name, about] : kListings) what.push_back(name);
  app->add_option("what", args->what,
                  "tasks (or models), recipes, keys, norms, backends, ops, studies, observers or\n"
                  "tables; without it: the kinds")
      ->check(CLI::IsMember(what));
  app->add_option("name", args->name, "for norms: only this one; for keys: those of this task");
  CLI::Option* json = app->add_flag("--json", args->json, "machine-readable output on stdout");
  app->add_flag("--markdown", args->markdown, "with keys: print the page docs/keys.md")
      ->excludes(json);
  app->footer(
      "examples:\n"
      "  keel list\n"
      "  keel list tasks\n"
      "  keel list norms layernorm\n"
      "  keel list keys mnist_mlp\n"
      "  keel list backends --json");
  app->callback([args, command] { command.code = run_list(*args); });
}

void add_inspect_memory(Command command, CLI::App& inspect) {
  CLI::App* app =
      inspect.add_subcommand("memory", "memory of a training's programs, of all shapes");
  auto args = std::make_shared<MemoryArgs>();
  add_run_options(*app, args->run, "paper")->required();
  add_choice(*app, "--mode", args->mode, {"step", "evaluate"},
             "shapes of the training rows, or of the validation rows");
  app->footer(
      "Compiles the program for each input shape and runs none. All programs share an arena.\n"
      "examples:\n"
      "  keel inspect memory translation --recipe multi30k --data DIR\n"
      "  keel inspect memory mnist_mlp --mode evaluate --json");
  app->callback([args, command] { command.code = run_inspect_memory(*args); });
}

void add_inspect(Command command) {
  CLI::App* app =
      command.app.add_subcommand("inspect", "inspect a graph, memory, a checkpoint or data");
  app->require_subcommand(1);
  CLI::App* graph = app->add_subcommand("graph", "the graph of a task, and its memory plan");
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
  add_inspect_memory(command, *app);
  const auto add_path = [&](const char* name, const char* about, const char* path,
                            int (*run)(const FileArgs&)) {
    CLI::App* sub = app->add_subcommand(name, about);
    auto args = std::make_shared<FileArgs>();
    sub->add_option("path", args->path, path)->required();
    sub->add_flag("--json", args->json, "machine-readable output on stdout");
    sub->callback([args, run, command] { command.code = run(*args); });
    return sub;
  };
  add_path("checkpoint", "names, types and metadata of a safetensors file",
           "the file, or a run's folder (its best)", run_inspect_checkpoint)
      ->footer(
          "examples:\n  keel inspect checkpoint runs/a\n"
          "  keel inspect checkpoint runs/a/checkpoints/best.safetensors --json");
  add_path("data", "data that each task finds in a folder, or an IDX file",
           "the folder, or the file", run_inspect_data)
      ->footer(
          "examples:\n  keel inspect data DIR/mnist\n"
          "  keel inspect data DIR/mnist/train-images-idx3-ubyte.gz --json");
  app->footer(
      "examples:\n"
      "  keel inspect graph mnist_mlp --stage plan\n"
      "  keel inspect memory mnist_mlp\n"
      "  keel inspect checkpoint runs/a/checkpoints/best.safetensors\n"
      "  keel inspect data DIR/mnist");
}

void add_norm(Command command) {
  CLI::App* app = command.app.add_subcommand("norm", "run a norm on your own arrays");
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
  app->add_option("--seed", args->seed, "seed of the noise, which is sampled again in every step")
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
      "  mask        u1 or bool, the shape of x without its last axis, 0 for padding; for norms "
      "over\n"
      "              the batch and instancenorm, not for images\n"
      "  s<i>.*      several calls of one layer, which pass on its state; recurrentbatchnorm is "
      "at\n"
      "              time step 0 in all of them (state.t0.*)\n"
      "  f4, f8, i4, i8 (within 32 bits), u1 or bool; results are in --dtype\n"
      "\n"
      "examples:\n"
      "  keel norm layernorm --in case.npz --out result.npz\n"
      "  keel norm batchnorm --option keep=0.99 --mode eval --in case.npz --out result.npz\n"
      "  keel norm batchnorm --backend reference --dtype f64 --in case.npz --out result.npz");
  app->callback([args, command] { command.code = run_norm(*args); });
}

}  // namespace

int parse_and_run(int argc, char** argv) {
  if (argc > 0) set_program(argv[0]);
  CLI::App app("keel: train and compare networks with every normalization, on CPUs and GPUs");
  app.footer(kFooter);
  app.set_version_flag("--version", "keel " KEEL_VERSION);
  app.require_subcommand(1);
  int code = 0;
  const Command command{app, code};
  add_train(command);
  add_eval(command);
  add_predict(command);
  add_list(command);
  add_inspect(command);
  add_bench(command);
  add_norm(command);
  add_identify(command);
  add_compare(command);
  add_study(command);
  add_report(command);
  add_reproduce(command);
  add_text(command);
  add_common_checks(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      const std::string unknown = unknown_word(app, argc, argv);
      fail(ErrorKind::kUsage, "{}", unknown.empty() ? error.what() : unknown);
    }
    std::ostringstream help;
    app.exit(error, help, help);
    print(help.str());
  }
  return code;
}

}  // namespace keel::cli

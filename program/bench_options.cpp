// The command line of `keel bench`.
#include <memory>

#include "program/subcommand.h"

namespace keel::cli {
namespace {

void add_rounds(CLI::App& app, int& rounds) {
  app.add_option("--rounds", rounds, "timed repetitions")
      ->check(CLI::Range(3, 1000000))
      ->capture_default_str();
}

// Returns --peer.
CLI::Option* add_peer(CLI::App& app, PeerArgs& peer, const std::vector<std::string>& modes,
                      const std::vector<std::string>& libraries = {"torch"}) {
  CLI::Option* name =
      app.add_option("--peer", peer.name,
                     "also measure a library, in a child process (KEEL_PYTHON): torch (PyTorch) "
                     "or, of step and norms, jax")
          ->check(CLI::IsMember(libraries));
  app.add_option("--peer-modes", peer.modes,
                 "how the peer runs, separated by commas; default: usual, on cuda all")
      ->delimiter(',')
      ->check(CLI::IsMember(modes))
      ->needs(name);
  return name;
}

// The options of commands that can measure JAX, too.
void add_peers(CLI::App& app, PeerArgs& peer, const std::vector<std::string>& modes) {
  CLI::Option* name = add_peer(app, peer, modes, {"torch", "jax"});
  app.add_flag("--under-load", peer.under_load,
               "measure keel and the peer also while as many processes as threads keep busy")
      ->needs(name);
}

void add_bench_graph(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("graph", "building and compiling graphs of many nodes");
  auto args = std::make_shared<GraphBenchArgs>();
  app->add_option("--nodes", args->nodes, "sizes of the graphs, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(100, 1000000))
      ->capture_default_str();
  add_rounds(*app, args->rounds);
  app->add_flag("--json", args->json, "machine-readable output");
  app->footer("examples:\n  keel bench graph\n  keel bench graph --nodes 30000 --rounds 5 --json");
  app->callback([args, command] { command.code = run_bench_graph(*args); });
}

void add_bench_recurrent(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("recurrent", "a training step of LSTM or GRU layers");
  auto args = std::make_shared<RecurrentBenchArgs>();
  app->add_option("--cell", args->cell, "lstm or gru")
      ->check(CLI::IsMember({"lstm", "gru"}))
      ->capture_default_str();
  app->add_option("--norm", args->norm, "name or name{option=value,...}, at every site of the cell")
      ->capture_default_str();
  const auto add_size = [&](const char* name, std::int64_t& size, const char* about) {
    app->add_option(name, size, about)->check(CLI::Range(1, 100000))->capture_default_str();
  };
  add_size("--layers", args->layers, "one above the other");
  add_size("--width", args->width, "of the states and of the input");
  add_size("--steps", args->steps, "of a sequence");
  add_size("--rows", args->rows, "sequences of a batch");
  app->add_option("--compute", args->compute, "f32 or bf16: the type of the factors of products")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  add_peer(*app, args->bench.peer, kStepPeerModes);
  add_rounds(*app, args->bench.rounds);
  add_backend_options(*app, args->bench.run);
  app->add_flag("--profile", args->bench.profile, "also print the time of every node");
  app->footer(
      "examples:\n"
      "  keel bench recurrent --threads 2 --rounds 20\n"
      "  keel bench recurrent --cell gru --norm layernorm --layers 1 --width 1024 --steps 30 "
      "--rows "
      "128");
  app->callback([args, command] { command.code = run_bench_recurrent(*args); });
}

void add_bench_table(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("table", "a training step of a large table of embeddings");
  auto args = std::make_shared<TableBenchArgs>();
  const auto add_size = [&](const char* name, std::int64_t& size, const char* about) {
    app->add_option(name, size, about)->check(CLI::Range(1, 10000000))->capture_default_str();
  };
  add_size("--vocabulary", args->vocabulary, "rows of the table");
  add_size("--width", args->width, "of a row");
  add_size("--ids", args->ids, "of a batch");
  app->add_option("--optimizer", args->optimizer, "like train.optimizer")
      ->check(CLI::IsMember({"sgd", "adam", "adagrad", "rmsprop_graves"}))
      ->capture_default_str();
  add_rounds(*app, args->rounds);
  add_backend_options(*app, args->run);
  app->footer(
      "examples:\n  keel bench table --threads 2\n  keel bench table --optimizer sgd --json");
  app->callback([args, command] { command.code = run_bench_table(*args); });
}

void add_bench_softmax(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("softmax", "the loss of a softmax over many words");
  auto args = std::make_shared<SoftmaxBenchArgs>();
  const auto add_size = [&](const char* name, std::int64_t& size, const char* about) {
    app->add_option(name, size, about)->check(CLI::Range(1, 10000000))->capture_default_str();
  };
  add_size("--words", args->words, "of the vocabulary");
  add_size("--width", args->width, "of a word's row");
  add_size("--rows", args->rows, "of a batch");
  app->add_option("--cutoffs", args->cutoffs, "of an adaptive softmax, separated by commas")
      ->delimiter(',');
  app->add_option("--label-smoothing", args->label_smoothing, "like model.label_smoothing")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_peer(*app, args->bench.peer, kStepPeerModes);
  add_rounds(*app, args->bench.rounds);
  add_backend_options(*app, args->bench.run);
  app->footer(
      "examples:\n"
      "  keel bench softmax --threads 2 --rounds 10\n"
      "  keel bench softmax --words 267735 --cutoffs 20000,40000,200000 --rounds 5");
  app->callback([args, command] { command.code = run_bench_softmax(*args); });
}

void add_bench_ranks(CLI::App& bench, Command command) {
  CLI::App* app =
      bench.add_subcommand("ranks", "a step by several processes, and an estimate for more");
  auto args = std::make_shared<RanksBenchArgs>();
  add_run_options(*app, args->run, "laptop")->required();
  const auto add_size = [&](const char* name, int& count, int least, const char* about) {
    app->add_option(name, count, about)->check(CLI::Range(least, 100000))->capture_default_str();
  };
  add_size("--ranks", args->ranks, 2,
           "processes of one thread, compared with one process of as many");
  add_size("--shards", args->shards, 2, "of a batch");
  add_size("--rounds", args->rounds, 1, "times that each way is started");
  add_size("--steps", args->steps, 1, "timed steps of each start");
  add_choice(*app, "--reduce", args->reduce, {"fixed", "fast"}, "with --here or mpirun");
  app->add_flag("--here", args->here, "measure only this process, and start no other");
  app->footer(
      "Starts itself by mpirun. Under mpirun it measures the processes that mpirun started.\n"
      "\n"
      "examples:\n"
      "  keel bench ranks text_classifier\n"
      "  mpirun --hostfile hosts -n 16 keel bench ranks translation --set train.shards=16 --json");
  app->callback([args, command] { command.code = run_bench_ranks(*args); });
}

void add_bench_norms(CLI::App& bench, Command command) {
  CLI::App* app =
      bench.add_subcommand("norms", "norms, compared with a plain copy of the same bytes");
  auto args = std::make_shared<NormBenchArgs>();
  app->add_option("norms", args->norms, "name or name{option=value,...}; default: all");
  app->add_option("--shapes", args->shapes, "ROWSxWIDTH or NxCxHxW, separated by commas")
      ->delimiter(',');
  app->add_option("--threads", args->threads,
                  "one or more counts, separated by commas; 0: all; default: 1,2")
      ->delimiter(',')
      ->check(kThreads);
  app->add_option("--compute", args->compute,
                  "f32 (the default) or bf16: the type of x, dy, y and dx")
      ->check(CLI::IsMember({"f32", "bf16"}));
  app->add_flag("--residual", args->residual,
                "the norm reads the sum of x and a residual; the sum is a result as well");
  CLI::Option* hashes =
      app->add_flag("--hashes", args->hashes,
                    "print hashes of the results on some 1,400 shapes instead of times");
  app->add_option("--against", args->against,
                  "a file with such hashes, to be compared with those of this machine")
      ->needs(hashes);
  add_peers(*app, args->peer, kNormPeerModes);
  add_rounds(*app, args->rounds);
  for (const char* timed : {"--shapes", "--compute", "--residual", "--peer", "--rounds"}) {
    hashes->excludes(app->get_option(timed));
  }
  add_backend(*app, args->run);
  app->footer(
      "examples:\n"
      "  keel bench norms layernorm 'batchnorm{keep=0.99}' --shapes 4096x512 --threads 2\n"
      "  KEEL_PYTHON=/usr/bin/python3 keel bench norms --peer torch --json\n"
      "  keel bench norms layernorm --threads 2 --peer jax --under-load\n"
      "  keel bench norms --hashes --against bench/results/norm_hashes.txt");
  app->callback([args, command] {
    command.code = args->hashes ? run_norm_hashes(*args) : run_bench_norms(*args);
  });
}

void add_bench_accuracy(CLI::App& bench, Command command) {
  CLI::App* app = bench.add_subcommand("accuracy", "norms, compared with the float64 reference");
  auto args = std::make_shared<AccuracyArgs>();
  app->add_option("norms", args->norms,
                  "name or name{option=value,...}; default: all but those below");
  app->add_option("--case", args->at, "only this case, as the table names it");
  app->add_flag("--thorough", args->thorough, "nearly every combination; takes minutes")
      ->excludes(app->get_option("--case"));
  add_backend_options(*app, args->run);
  app->footer(
      "not included: none; noisybatchnorm, recurrentbatchnorm and sequencebatchnorm, whose kernels "
      "are\n"
      "batchnorm's; weightnorm, a norm of weights. Masks and evaluation are not run.\n"
      "\n"
      "examples:\n"
      "  keel bench accuracy\n"
      "  keel bench accuracy batchnorm 'layernorm{eps_outside=true}' --thorough --json\n"
      "  keel bench accuracy pn_v --case columns,groups=3,n=4097,mean=1e6,gain=false");
  app->callback([args, command] { command.code = run_bench_accuracy(*args); });
}

}  // namespace

void add_bench(Command command) {
  CLI::App* app = command.app.add_subcommand("bench", "measure speed and accuracy");
  app->require_subcommand(1);
  const auto add = [&](const char* name, const char* about, int (*run)(const BenchArgs&)) {
    CLI::App* sub = app->add_subcommand(name, about);
    auto args = std::make_shared<BenchArgs>();
    add_run_options(*sub, args->run, "paper")->required();
    add_rounds(*sub, args->rounds);
    if (run == run_bench_step) add_peers(*sub, args->peer, kStepPeerModes);
    sub->add_flag("--profile", args->profile, "also print the time of every node");
    sub->callback([args, run, command] { command.code = run(*args); });
    return sub;
  };
  add("step", "a training step, compared with its matrix products and one pass of its optimizer",
      run_bench_step)
      ->footer(
          "examples:\n"
          "  keel bench step mnist_mlp --threads 2 --profile\n"
          "  KEEL_PYTHON=/usr/bin/python3 keel bench step mnist_cnn --peer torch --json");
  add("overhead", "the run loop itself, on the null backend", run_bench_overhead)
      ->footer("examples:\n  keel bench overhead mnist_mlp");
  add_bench_graph(*app, command);
  add_bench_recurrent(*app, command);
  add_bench_table(*app, command);
  add_bench_softmax(*app, command);
  add_bench_ranks(*app, command);
  add_bench_norms(*app, command);
  add_bench_accuracy(*app, command);
  app->footer(
      "examples:\n"
      "  keel bench step mnist_mlp --threads 2 --profile\n"
      "  keel bench overhead mnist_mlp\n"
      "  keel bench graph\n"
      "  keel bench norms layernorm batchnorm --shapes 4096x512 --threads 2\n"
      "  keel bench accuracy\n"
      "  keel bench accuracy batchnorm 'layernorm{eps_outside=true}' --thorough --json\n"
      "  keel bench accuracy pn_v --case columns,groups=3,n=4097,mean=1e6,gain=false\n"
      "  KEEL_PYTHON=/usr/bin/python3 keel bench norms --peer torch --json");
}

}  // namespace keel::cli

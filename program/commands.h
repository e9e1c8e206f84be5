// The subcommands of `keel`: the arguments of each, and the function that runs it. The function
// returns the exit code and throws Error for everything that goes wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/io/chart_formats.h"
#include "frontend/task/continuation.h"

namespace keel::cli {

// The options that choose a model, a recipe, data and a backend.
struct RunArgs {
  std::string model, recipe, data, backend, norm, compute;
  std::string usual_recipe;       // where no recipe is named: recipe_name()
  std::vector<std::string> sets;  // "section.key=value"
  int threads = 0;
  std::optional<int> device;  // of cuda
  bool tf32 = false, json = false;
};

struct TrainArgs {
  RunArgs run;
  std::vector<std::string> observe;
  std::string out, resume, seed, on_nonfinite, reduce = "fixed", carrier = "mpi";
  std::int64_t at_once = 0;  // 0: the shards of one micro-batch
  bool quiet = false;
  std::vector<std::string> searches = {};  // "key=v1,v2,..."; empty: one training
  std::string by = {};                     // of a search: the metric; empty: the task's first
  int jobs = 1;                            // of a search: trainings at once
};
int run_train(TrainArgs args);

struct EvalArgs {
  RunArgs run;
  std::string path, split = "test", statistics = "running";
  std::string output;  // a file for the answers; empty: none
};
int run_eval(const EvalArgs& args);

struct PredictArgs {
  RunArgs run;  // settings, backend, threads and json only
  std::string path, output;
  std::vector<std::string> texts;  // in place of standard input
  std::vector<std::string> files;  // pictures, and folders of pictures
  std::string bias, vectors;       // the same as --set model.bias=..., --set model.vectors=...
  bool scores = false, tokenized = false;
  int n_best = 0;  // answers to each line; 0: only the best one
  // A language model continues the prompt.
  std::optional<std::string> prompt = std::nullopt;
  std::int64_t tokens = 100, seed = 1;
  task::SampleOptions sample = {};
};
int run_predict(const PredictArgs& args);

// The listings of `keel list`.
inline const std::vector<std::pair<std::string, std::string>> kListings{
    {"tasks", "what can be trained, with the recipes of each (models is another name)"},
    {"recipes", "the recipes of every task"},
    {"keys", "every key of a recipe and of --set, with its default and its values"},
    {"norms", "the norms, with formula, options and source"},
    {"backends", "what computes, and whether it runs here"},
    {"ops", "the operations of graphs"},
    {"studies", "the claims that keel study checks"},
    {"observers", "what keel train --observe writes of a training"},
    {"tables", "the tables and figures that keel reproduce trains"}};

struct ListArgs {
  std::string what;  // one of kListings, or models; empty: these themselves
  std::string name;  // for norms, only this one; for keys, a model; empty: all
  bool json = false, markdown = false;
};
int run_list(const ListArgs& args);
int run_list_keys(const ListArgs& args);

struct GraphArgs {
  RunArgs run;
  std::string mode = "step", stage = "after";
};
int run_inspect_graph(const GraphArgs& args);

struct MemoryArgs {
  RunArgs run;
  std::string mode = "step";
};
int run_inspect_memory(const MemoryArgs& args);

struct FileArgs {
  std::string path;
  bool json = false;
};
int run_inspect_checkpoint(const FileArgs& args);
int run_inspect_data(const FileArgs& args);
int run_identify(const FileArgs& args);

// JAX's modes, and PyTorch's for norms: bench/peer/serve.py.
inline const std::vector<std::string> kJaxPeerModes{"usual", "plain", "channels_last"};
inline const std::vector<std::string> kNormPeerModes{"usual", "plain", "compiled", "graph"};
// PyTorch's for steps in float32, and all of its for steps.
inline const std::vector<std::string> kWidePeerModes{"usual", "channels_last", "compiled", "graph",
                                                     "compiled_graph"};
inline const std::vector<std::string> kStepPeerModes{
    "usual",          "channels_last", "compiled",         "graph",
    "compiled_graph", "autocast",      "autocast_compiled"};

struct PeerArgs {
  std::string name;                // torch, jax, or empty
  std::vector<std::string> modes;  // empty: see docs/cli.md, keel bench step
  bool under_load = false;
};

struct BenchArgs {
  RunArgs run;
  PeerArgs peer;  // for a step only
  int rounds = 50;
  bool profile = false;
};
int run_bench_step(const BenchArgs& args);
int run_bench_overhead(const BenchArgs& args);

struct RecurrentBenchArgs {
  BenchArgs bench;  // backend, threads, json, peer, rounds and profile
  std::string cell = "lstm", norm = "none", compute = "f32";
  std::int64_t layers = 3, width = 400, steps = 100, rows = 8;
};
int run_bench_recurrent(const RecurrentBenchArgs& args);

struct GraphBenchArgs {
  std::vector<int> nodes{1000, 4000, 16000, 90000};
  int rounds = 3;
  bool json = false;
};
int run_bench_graph(const GraphBenchArgs& args);

struct TableBenchArgs {
  RunArgs run;  // only backend, threads and json
  std::string optimizer = "adam";
  std::int64_t vocabulary = 50000, width = 256, ids = 4096;
  int rounds = 30;
};
int run_bench_table(const TableBenchArgs& args);

struct SoftmaxBenchArgs {
  BenchArgs bench;  // backend, threads, json, peer and rounds
  std::int64_t words = 10000, width = 256, rows = 4096;
  std::vector<std::int64_t> cutoffs;
  double label_smoothing = 0;
};
int run_bench_softmax(const SoftmaxBenchArgs& args);

struct RanksBenchArgs {
  RunArgs run;
  std::string reduce = "fixed";  // of ranks that were started already
  int ranks = 2, shards = 8, rounds = 3, steps = 20;
  bool here = false;  // measure only this process, or those that it was started with
};
int run_bench_ranks(const RanksBenchArgs& args);

struct NormBenchArgs {
  RunArgs run;                             // only backend and json
  std::vector<std::string> norms, shapes;  // empty: all norms, a choice of shapes
  std::vector<int> threads;                // each measured; 0: all; empty: 1 and 2, on cuda 0
  PeerArgs peer;
  std::string compute = "f32";
  bool residual = false;
  int rounds = 50;
  bool hashes = false;  // of results, in place of times
  std::string against;  // a file with such hashes; empty: none

  bool is_narrow() const { return compute == "bf16"; }
};
int run_bench_norms(NormBenchArgs args);
int run_norm_hashes(const NormBenchArgs& args);

struct AccuracyArgs {
  RunArgs run;                     // only backend, threads and json
  std::vector<std::string> norms;  // empty: all
  std::string at;                  // one case; empty: all that are generated
  bool thorough = false;
};
int run_bench_accuracy(const AccuracyArgs& args);

struct NormArgs {
  RunArgs run;  // backend, threads and json only
  std::string norm, in, out, dtype = "f32", mode = "train";
  std::vector<std::string> options;  // "key=value"
  std::int64_t seed = 0;             // of noise
};
int run_norm(const NormArgs& args);

struct CompareArgs {
  RunArgs run;                       // all but backend; model is the first word of `subject`
  std::vector<std::string> subject;  // TASK, or "op" or "norm" and a name
  bool all_ops = false, unfused = false, as_run = false, rank = false;
  bool strict = false;                // results that were not judged or are suspect fail, too
  bool names = false;                 // only print the names of arrays
  std::vector<std::string> backends;  // empty: all of this build that run here
  std::string mode = "isolated", only;
  std::string input_case;  // of an op or a norm; empty: all
  std::vector<std::string> faults;
  int node_steps = 1;
  std::string junit, html, dump;  // files to write; empty: none
  std::string record, against;    // folders of traces; against may be an .npz
  std::string start;              // an .npz with the first state of a step; empty: none
  int steps = 0;                  // training steps to follow; 0: none, nodes are compared
  std::string perturb, svg;       // "1ulp" or empty; a file for a plot of the steps
};
int run_compare(CompareArgs args);

struct ReportArgs {
  std::vector<std::string> runs;  // their folders
  std::string out = "report", axis = "auto";
  bool log_x = false, json = false;
  io::ChartFormats formats;
};
int run_report(const ReportArgs& args);

struct ReproduceArgs {
  RunArgs run;  // recipe: paper, short or laptop; everything else but model and norm
  std::string table, seeds = "3", out;
  std::vector<std::string> tasks, norms;  // empty: all
  int jobs = 1;
  bool plan = false, as_is = false;
  io::ChartFormats formats;
  bool names_recipe = false;  // otherwise it is the usual one, and studies have their own
};
int run_reproduce(ReproduceArgs args);

struct StudyArgs {
  RunArgs run;  // without recipe; model, norm, data and sets of a study that takes a task
  std::string name, output, site, vectors;
  std::vector<std::string> norms, runs;
  std::int64_t seed = 0;
  int seeds = 0, steps = 0;
  io::ChartFormats formats;
};
int run_study(const StudyArgs& args);

}  // namespace keel::cli

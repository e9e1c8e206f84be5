// keel train
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "backends/ranks.h"
#include "frontend/io/message.h"
#include "frontend/train/run_result.h"
#include "frontend/train/trainer.h"
#include "program/common.h"
#include "program/end_ranks.h"
#include "program/rank_facts.h"
#include "program/run_doubts.h"
#include "program/search.h"
#include "program/small_data.h"
#include "src/core/shown.h"
#include "studies/observers.h"

namespace keel::cli {
namespace {

nlohmann::ordered_json to_json(const train::Summary& s, const std::string& folder,
                               const std::vector<std::string>& doubts) {
  nlohmann::ordered_json json{{"folder", folder}};
  json.update(train::summary_json(s));
  json["warnings"] = doubts;
  return json;
}

std::string to_text(const train::Summary& s, const std::string& folder, std::string_view unit,
                    const std::vector<std::string>& doubts) {
  const auto line = [](const char* weights, const train::Evaluation& e) {
    return fmt::format("test, {} weights: {}\n", weights, train::text(e));
  };
  const train::RunState& state = s.state;
  std::string text = line("last", s.test);
  if (s.best_test) text += line("best", *s.best_test);
  if (s.average_test) text += line("averaged", *s.average_test);
  if (state.best_step >= 0) {
    const task::MetricInfo& first = s.valid.metrics.front().info;
    text += fmt::format("best weights: step {}, valid {} {:.2f}{}{}\n", state.best_step, first.name,
                        state.best, first.unit.empty() ? "" : " ", first.unit);
  }
  if (s.last_is_better) {
    text += fmt::format(
        "the last weights are better on the validation set ({}), but no validation was due at step "
        "{} (train.eval_every): they do not count as the best\n",
        train::text(s.valid), state.step);
  }
  if (!s.stopped_because.empty()) text += fmt::format("stopped early: {}\n", s.stopped_because);
  text += fmt::format("steps: {} in {}, {:.0f} {}/s without evaluations\n", state.step,
                      train::duration_text(s.total_seconds), s.items_per_second, unit);
  if (state.skipped > 0) {
    text += fmt::format("updates left out, for they were not finite: {}\n", state.skipped);
  }
  text += fmt::format("plots: {}/loss.svg", shown(folder));
  for (const train::Measured& m : s.test.metrics) {
    text += fmt::format(" {}/{}.svg", shown(folder), m.info.name);
  }
  text += '\n';
  for (const std::string& doubt : doubts) text += fmt::format("warning: {}\n", shown(doubt));
  return text;
}

std::string default_folder(const RunArgs& args) {
  const std::string recipe = std::filesystem::path(recipe_name(args)).stem();
  return fmt::format("runs/{}-{}", args.model, recipe);
}

std::map<std::string, std::string> values_of(const train::Config& config) {
  std::map<std::string, std::string> values;
  for (const OptionFact& fact : config.facts()) values[fact.name] = fact.value;
  return values;
}

// Whether a key determines the network, the order of rows, the random numbers or the optimizer's
// state in a checkpoint.
bool is_fixed(const std::string& key) {
  constexpr std::array<std::string_view, 9> kFixed = {
      "train.seed",      "train.batch", "train.accumulate", "train.shards", "train.statistics",
      "train.optimizer", "data.seed",   "data.train_rows",  "train.observe"};
  return key.starts_with("model.") || std::ranges::find(kFixed, key) != kFixed.end();
}

// Such a setting can have the value that it has and no other.
void expect_resumable(const std::map<std::string, std::string>& before,
                      const std::map<std::string, std::string>& after) {
  for (const auto& [key, value] : after) {
    check(!is_fixed(key) || before.at(key) == value, ErrorKind::kUsage,
          "--resume --set {}: expected {}, with which the run was started, got '{}'", key,
          before.at(key), value);
  }
}

task::OptionValues facts_of(const Backend& backend, const Communicator& ranks) {
  task::OptionValues facts = run_facts(backend);
  if (ranks.size() > 1) {
    facts.emplace_back("ranks", fmt::format("{} by {}", ranks.size(), ranks.description()));
  }
  return facts;
}

train::Job resumed_job(const TrainArgs& args) {
  check(std::filesystem::is_directory(args.resume), ErrorKind::kIo, "{}: no such folder",
        args.resume);
  const train::RunFolder folder{args.resume};
  const train::CheckpointStore store(folder.checkpoints(), [](const std::string&) {});
  const auto checkpoint = store.latest();
  check(checkpoint.has_value(), ErrorKind::kBadInput, "{}: no intact checkpoint to resume from",
        folder.checkpoints().string());
  train::expect_model_of_run(folder, checkpoint->content, checkpoint->path);
  train::Job job = train::job_of_checkpoint(checkpoint->content, checkpoint->path, make_task);
  train::expect_options_of_run(folder, checkpoint->content, checkpoint->path);
  check(args.run.model.empty() || args.run.model == job.task().name(), ErrorKind::kBadInput,
        "{}: expected a checkpoint of {}, got one of {}", checkpoint->path.string(), args.run.model,
        job.task().name());
  expect_one("--data", args.run.data, "data.source", args.run.sets);
  expect_one("--compute", args.run.compute, "train.compute", args.run.sets);
  task::OptionValues settings;
  if (!args.run.compute.empty()) settings.emplace_back("train.compute", args.run.compute);
  if (!args.run.data.empty()) settings.emplace_back("data.source", args.run.data);
  for (const std::string& assignment : args.run.sets) settings.push_back(setting_of(assignment));
  const std::map<std::string, std::string> before = values_of(job.config());
  job = std::move(job).with(settings);
  expect_resumable(before, values_of(job.config()));
  return job;
}

// Settles the options of a new run and its folder.
void begin_run(TrainArgs& args, bool writes) {
  check(!args.run.model.empty(), ErrorKind::kUsage,
        "train: expected a task (see keel list tasks) or --resume FOLDER");
  expect_one("--seed", args.seed, "train.seed", args.run.sets);
  if (!args.seed.empty()) args.run.sets.push_back("train.seed=" + args.seed);
  if (args.out.empty()) args.out = default_folder(args.run);
  if (writes) train::expect_no_run({args.out});
}

// Compares program, options and recipe, before any rank reads the data.
void expect_same_start(Communicator& ranks, const Backend& backend, const TrainArgs& args,
                       const train::Config& config) {
  train::RankFacts facts{{"--out", args.out},
                         {"--resume", args.resume},
                         {"--reduce", args.reduce},
                         {"--at-once", std::to_string(args.at_once)},
                         {"--carrier", args.carrier}};
  for (const OptionFact& fact : config.facts()) facts.emplace_back(fact.name, fact.value);
  expect_same_ranks(ranks, backend, facts);
}

// Prepares the data of a new run; those of an old one are read when they are asked for.
train::Job make_job(TrainArgs& args, const Backend& backend, Communicator& ranks) {
  if (!args.resume.empty()) {
    train::Job job = resumed_job(args);
    expect_same_start(ranks, backend, args, job.config());
    return job;
  }
  begin_run(args, ranks.rank() == 0);
  expect_same_start(ranks, backend, args, make_config(args.run));
  return job_for_data(args.run, ranks.rank() == 0);
}

int finished_already(const TrainArgs& args, const std::string& folder) {
  io::say(fmt::format("{}: finished already; nothing to do", shown(folder)));
  if (!args.run.json) return 0;
  nlohmann::ordered_json json{{"folder", folder}};
  json.update(train::result_of(train::RunFolder{folder}));
  print_json(json);
  return 0;
}

std::string interrupted_text(const train::Summary& summary, const std::string& folder) {
  const std::string undone =
      summary.undone.empty() ? "" : fmt::format(", before {} had ended", summary.undone);
  return fmt::format("interrupted at step {}{}; go on with: {} train --resume {}",
                     summary.state.step, undone, program_called(), shell_quoted(folder));
}

void settle_observers(TrainArgs& args) {
  const std::string observe = fmt::format("{}", fmt::join(args.observe, ";"));
  expect_one("--observe", observe, "train.observe", args.run.sets);
  if (!observe.empty()) args.run.sets.push_back("train.observe=" + observe);
  study::check_observe(observe);
}

int train_with(TrainArgs args, Communicator& ranks) {
  if (!args.searches.empty()) return run_search(std::move(args), ranks.size());
  const bool writes = ranks.rank() == 0;
  expect_one("--on-nonfinite", args.on_nonfinite, "train.on_nonfinite", args.run.sets);
  if (!args.on_nonfinite.empty()) {
    args.run.sets.push_back("train.on_nonfinite=" + args.on_nonfinite);
  }
  settle_observers(args);
  const bool resume = !args.resume.empty();
  const auto backend = make_backend(args.run);
  train::Job job = make_job(args, *backend, ranks);
  const std::string folder = resume ? args.resume : args.out;
  settle_compute(job, *backend, &ranks);
  const auto observers = study::observers_of(job);
  const Reduction reduction = args.reduce == "fast" ? Reduction::kFast : Reduction::kFixed;
  train::RunOptions options{folder, resume,    args.quiet,  facts_of(*backend, ranks),
                            &ranks, reduction, args.at_once};
  for (const auto& observer : observers) options.observers.push_back(observer.get());
  options.backend = backend_text(*backend);
  train::Trainer trainer(*backend, job, options);
  if (trainer.has_finished()) return writes ? finished_already(args, folder) : 0;
  const train::Summary summary = trainer.run();
  if (summary.signal != 0) {
    if (writes) io::say(interrupted_text(summary, folder));
    return 128 + summary.signal;
  }
  if (!writes) return 0;
  const std::vector<std::string> doubts = doubts_of(job, summary);
  args.run.json ? print_json(to_json(summary, folder, doubts))
                : print(to_text(summary, folder, job.task().item_unit(), doubts));
  return 0;
}

// The GPU that NCCL carries values to and from: that of the backend, or the first one.
int gpu_of_rank(const RunArgs& run) {
  return backend_name(run) == "cuda" ? gpu_of(backend_options(run)) : 0;
}

}  // namespace

int run_train(TrainArgs args) {
  const auto ranks = start_ranks([](const std::string& line) { io::say(line); });
  if (ranks->size() == 1) return train_with(std::move(args), *ranks);
  // It outlives the catch: to destroy it would be to wait for ranks that do not fail.
  std::unique_ptr<Communicator> nccl;
  try {
    if (args.carrier == "nccl") nccl = carried_by_nccl(*ranks, gpu_of_rank(args.run));
    return train_with(std::move(args), nccl ? *nccl : *ranks);
  } catch (...) {
    return end_ranks(*ranks);
  }
}

}  // namespace keel::cli

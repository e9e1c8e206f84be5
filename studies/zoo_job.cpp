#include "studies/zoo_job.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "frontend/io/metrics_log.h"
#include "frontend/train/run_folder.h"
#include "frontend/train/run_result.h"
#include "frontend/train/run_state.h"
#include "models/registry.h"
#include "studies/memory_training.h"

namespace keel::study {
namespace {

std::string value_in(const train::Config& config, const std::string& key) {
  const std::vector<OptionFact> facts = config.facts();
  const auto found = std::ranges::find(facts, key, &OptionFact::name);
  return found == facts.end() ? "" : found->value;
}

}  // namespace

std::string task_of(const Options& options, const std::string& task) {
  return options.task.empty() ? task : options.task;
}

std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms) {
  return options.norms.empty() ? norms : options.norms;
}

std::vector<std::string> distinct_norms_of(const Options& options,
                                           const std::vector<std::string>& norms) {
  const std::vector<std::string> all = norms_of(options, norms);
  for (const std::string& norm : all) {
    check(std::ranges::count(all, norm) == 1, ErrorKind::kUsage,
          "--norm: expected each norm once, got {} twice", norm);
  }
  return all;
}

task::OptionValues descent_settings(const std::string& task) {
  if (task == "deep_linear") return {};
  return {{"train.optimizer", "sgd"}, {"train.lr", "0.1"}};
}

task::OptionValues encoder_settings(const std::string& task) {
  if (task != "translation") return {};
  return {{"model.sites", "encoder"}};
}

bool is_to_the_end(const Options& options) { return options.steps == 0 && !options.recipe.empty(); }

int seeds_of(const Options& options, int study) {
  return options.seeds > 0 ? options.seeds : study;
}

StoredRun open_run(const Options& options, const std::string& path) {
  io::TensorFile file = io::read_safetensors(path, {.require_checksums = true});
  train::Job job = train::job_of_checkpoint(file, path, [](const std::string& name) {
                     return models::find_model(name).make();
                   }).with(options.settings);
  return {path, std::move(file), std::move(job)};
}

std::vector<StoredRun> open_runs(const Options& options) {
  std::vector<StoredRun> runs;
  for (const std::string& path : options.runs) runs.push_back(open_run(options, path));
  return runs;
}

std::filesystem::path run_folder_of(const std::string& checkpoint) {
  const std::filesystem::path parent = std::filesystem::absolute(checkpoint).parent_path();
  return parent.filename() == "checkpoints" ? parent.parent_path() : parent;
}

std::string finished_corpus_of(const StoredRun& run) {
  if (run.job.task().name() != "translation" || run.job.data().source == "builtin") return "";
  return is_whole(run) ? setting_of(run.job, "model.corpus") : "";
}

bool is_whole(const StoredRun& run) {
  const train::RunFolder folder{run_folder_of(run.path)};
  if (!train::is_finished(folder)) return false;
  const std::int64_t most = run.job.train().max_steps;
  if (most == 0 || train::result_of(folder).value("steps", most) < most) return true;
  const models::ModelEntry& entry = models::find_model(std::string(run.job.task().name()));
  return std::ranges::any_of(entry.recipes, [&](const models::Recipe& recipe) {
    train::Config config(entry.make());
    config.apply_toml(recipe.toml, recipe.name);
    return config.train().max_steps == most;
  });
}

bool is_observed(const StoredRun& run, const std::string& observer) {
  return std::filesystem::exists(train::RunFolder{run_folder_of(run.path)}.observation(observer));
}

std::vector<nlohmann::ordered_json> observed_lines(const StoredRun& run,
                                                   const std::string& observer) {
  const train::RunFolder folder{run_folder_of(run.path)};
  const std::filesystem::path file = folder.observation(observer);
  check(is_observed(run, observer), ErrorKind::kBadInput,
        "{}: expected a run of keel train --observe {}, which writes {}, got none",
        folder.path.string(), observer, file.string());
  return io::read_metrics(file);
}

namespace {

// These settings decide nothing that a study looks at.
constexpr std::array<std::string_view, 8> kApart = {"train.seed",
                                                    "data.seed",
                                                    "data.source",
                                                    "train.observe",
                                                    "train.log_every",
                                                    "train.test_every",
                                                    "train.keep_checkpoints",
                                                    "train.checkpoint_every"};

}  // namespace

void expect_one_recipe(const std::string& study, std::span<const StoredRun> runs,
                       std::span<const std::string_view> may_differ) {
  for (const StoredRun& run : runs) {
    const auto like = std::ranges::find_if(runs, [&](const StoredRun& other) {
      return other.job.task().name() == run.job.task().name();
    });
    for (const OptionFact& fact : like->job.config().facts()) {
      const bool is_apart = std::ranges::count(kApart, fact.name) > 0 ||
                            std::ranges::count(may_differ, fact.name) > 0;
      const std::string value = setting_of(run.job, fact.name);
      check(is_apart || value == fact.value, ErrorKind::kUsage,
            "[{}] --run: expected runs of one recipe, got {} = {} of {} and {} of {}", study,
            fact.name, fact.value, like->path, value, run.path);
    }
  }
}

std::string setting_of(const train::Job& job, const std::string& key) {
  return value_in(job.config(), key);
}

namespace {

train::Config zoo_config(const Options& options, int i, const ZooRun& run) {
  const models::ModelEntry& entry = models::find_model(run.task);
  train::Config config(entry.make());
  const std::string recipe = options.recipe.empty() ? "laptop" : options.recipe;
  config.apply_toml(models::find_recipe(entry, recipe), recipe);
  const std::string seed = std::to_string(options.seed + std::uint64_t(i));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, seed);
  if (!options.data.empty()) config.set("data.source", options.data);
  if (!run.measures) {
    for (const auto& [key, value] : memory_settings()) config.set(key, value);
  }
  for (const auto& [key, value] : run.settings) config.set(key, value);
  config.set("model.norm", run.norm);
  if (!is_to_the_end(options)) {
    config.set("train.max_steps", std::to_string(options.steps > 0 ? options.steps : run.steps));
    config.set("train.epochs", "1000000");  // as many as these updates take
  }
  for (const auto& [key, value] : options.settings) config.set(key, value);
  config.validate();
  return config;
}

}  // namespace

train::Job zoo_job(const Options& options, int i, const ZooRun& run) {
  return train::Job(zoo_config(options, i, run));
}

std::vector<std::string> source_norms(const Options& options, const std::string& task) {
  if (task != "translation") return {"batchnorm", "pn_v", "powernorm{mode=paper}", "powernorm"};
  const train::Config config = zoo_config(options, 0, {task, "layernorm", 1});
  const std::string power =
      fmt::format("powernorm{{heads={},warmup={}", value_in(config, "model.heads"),
                  value_in(config, "train.warmup"));
  return {"batchnorm{keep=0.95}", "pn_v", power + ",mode=paper}", power + "}"};
}

train::Job zoo_job_of_one_batch(const Options& options, int i, const ZooRun& run) {
  train::Job job = zoo_job(options, i, run);
  check(job.train().accumulate == 1, ErrorKind::kUsage,
        "train.accumulate: expected 1, because this study takes an update as one batch, got {}",
        job.train().accumulate);
  return job;
}

}  // namespace keel::study

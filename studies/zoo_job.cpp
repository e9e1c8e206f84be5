#include "studies/zoo_job.h"

#include <algorithm>

#include "frontend/report/run.h"
#include "frontend/train/run_folder.h"
#include "frontend/train/run_state.h"
#include "models/registry.h"

namespace keel::study {

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

std::filesystem::path run_folder_of(const std::string& checkpoint) {
  const std::filesystem::path parent = std::filesystem::absolute(checkpoint).parent_path();
  return parent.filename() == "checkpoints" ? parent.parent_path() : parent;
}

std::string finished_corpus_of(const StoredRun& run) {
  if (run.job.task().name() != "translation" || run.job.data().source == "builtin") return "";
  const train::RunFolder folder{run_folder_of(run.path)};
  if (!std::filesystem::exists(folder.result())) return "";
  const bool is_finished = report::read_run(folder.path).outcome == report::Outcome::kFinished;
  return is_finished ? setting_of(run.job, "model.corpus") : "";
}

std::string setting_of(const train::Job& job, const std::string& key) {
  const std::vector<OptionFact> facts = job.config().facts();
  const auto found = std::ranges::find(facts, key, &OptionFact::name);
  return found == facts.end() ? "" : found->value;
}

train::Job zoo_job(const Options& options, int i, const ZooRun& run) {
  const models::ModelEntry& entry = models::find_model(run.task);
  train::Config config(entry.make());
  const std::string recipe = options.recipe.empty() ? "laptop" : options.recipe;
  config.apply_toml(models::find_recipe(entry, recipe), recipe);
  const std::string seed = std::to_string(options.seed + std::uint64_t(i));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, seed);
  if (!options.data.empty()) config.set("data.source", options.data);
  for (const auto& [key, value] : run.settings) config.set(key, value);
  config.set("model.norm", run.norm);
  config.set("train.max_steps", std::to_string(options.steps > 0 ? options.steps : run.steps));
  for (const auto& [key, value] : options.settings) config.set(key, value);
  config.validate();
  return train::Job(std::move(config));
}

train::Job zoo_job_of_one_batch(const Options& options, int i, const ZooRun& run) {
  train::Job job = zoo_job(options, i, run);
  check(job.train().accumulate == 1, ErrorKind::kUsage,
        "train.accumulate: expected 1, because this study takes an update as one batch, got {}",
        job.train().accumulate);
  return job;
}

}  // namespace keel::study

#include "studies/zoo_job.h"

#include "models/registry.h"

namespace keel::study {

std::string task_of(const Options& options, const std::string& task) {
  return options.task.empty() ? task : options.task;
}

std::vector<std::string> norms_of(const Options& options, const std::vector<std::string>& norms) {
  return options.norms.empty() ? norms : options.norms;
}

train::Job zoo_job(const Options& options, int i, const ZooRun& run) {
  const models::ModelEntry& entry = models::find_model(run.task);
  train::Config config(entry.make());
  config.apply_toml(models::find_recipe(entry, "laptop"), "laptop");
  const std::string seed = std::to_string(options.seed + std::uint64_t(i));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, seed);
  if (!options.data.empty()) config.set("data.source", options.data);
  for (const auto& [key, value] : run.settings) config.set(key, value);
  config.set("model.norm", run.norm);
  config.set("train.max_steps", std::to_string(options.steps > 0 ? options.steps : run.steps));
  for (const auto& [key, value] : options.settings) config.set(key, value);
  config.validate();
  check(config.train().accumulate == 1, ErrorKind::kUsage,
        "train.accumulate: expected 1 in a study, got {}", config.train().accumulate);
  return train::Job(std::move(config));
}

}  // namespace keel::study

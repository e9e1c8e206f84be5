#include "studies/mini_jobs.h"

#include "studies/memory_training.h"
#include "studies/residual_network.h"

namespace keel::study {
namespace {

constexpr std::string_view kVectorRecipe = R"(
[model]
hidden_variance = 2
logit_variance = 0.5
[train]
batch = 64
max_steps = 400
lr = 1e-3
warmup = 50
)";

constexpr std::string_view kSentenceRecipe = R"(
[model]
data = "sentences"
order = "stream"
train_rows = 102400
test_rows = 4000
blocks = 4
classes = 16
[train]
batch = 128
max_steps = 800
lr = 1e-3
beta2 = 0.98
warmup = 100
)";

std::string text(bool value) { return value ? "true" : "false"; }

}  // namespace

train::Job mini_job(std::unique_ptr<task::Task> task, std::string_view recipe, std::uint64_t seed,
                    const task::OptionValues& settings, int steps) {
  train::Config config(std::move(task));
  config.apply_toml(recipe, std::string(config.task().name()));
  for (const char* key : {"train.seed", "data.seed"}) config.set(key, std::to_string(seed));
  config.set("train.epochs", "1000000");
  for (const auto& [key, value] : memory_settings()) config.set(key, value);
  for (const auto& [key, value] : settings) config.set(key, value);
  if (steps > 0) config.set("train.max_steps", std::to_string(steps));
  config.validate();
  return train::Job(std::move(config));
}

train::Job vector_job(const Options& options, int i, const VectorRun& run) {
  return mini_job(std::make_unique<Residual>(), kVectorRecipe, options.seed + std::uint64_t(i),
                  {{"model.norm", run.norm},
                   {"model.post", text(run.post)},
                   {"model.order", std::string(choice_text(run.order))},
                   {"model.blocks", std::to_string(run.blocks)},
                   {"model.width", std::to_string(run.width)}},
                  options.steps > 0 ? options.steps : run.steps);
}

train::Job sentence_job(const Options& options, int i, const SentenceRun& run) {
  task::OptionValues settings{{"model.norm", run.norm},
                              {"model.layer_scale", text(run.layer_scale)},
                              {"model.spread", fmt::format("{}", run.spread)}};
  // A stream needs 128 rows a step.
  if (options.steps > 0) {
    settings.emplace_back("model.train_rows", fmt::format("{}", 128 * options.steps));
  }
  return mini_job(std::make_unique<Residual>(), kSentenceRecipe, options.seed + std::uint64_t(i),
                  settings, options.steps);
}

}  // namespace keel::study

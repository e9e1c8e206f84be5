// Helpers of the tests of all tasks.
#pragma once

#include <doctest/doctest.h>

#include "models/registry.h"
#include "tests/models/helpers.h"

namespace keel::models {

using test::operator+;

// Settings that make further networks of a task, each as different as that of another task.
inline std::vector<Settings> networks_of(std::string_view task) {
  if (task != "char_lm") return {{}};
  return {{},
          {"model.architecture=llama", "model.norm=rmsnorm", "model.place=pre", "model.kv_heads=1",
           "model.qk_norm=true"}};
}

// Every task of the zoo, small, with each of its networks.
template <class Body>
void for_each_task(const Body& body, const Settings& settings = {}) {
  for (const ModelEntry& entry : all_models()) {
    CAPTURE(entry.name);
    for (const Settings& network : networks_of(entry.name)) {
      CAPTURE(network.size());
      body(small_job(network + settings, entry.name));
    }
  }
}

// The job with more settings.
inline train::Job with_settings(const train::Job& job, const Settings& settings) {
  train::Config config(find_model(job.task().name()).make());
  config.apply_toml(job.config().to_toml(), "job");
  test::apply_settings(config, settings);
  return train::Job(std::move(config));
}

inline test::SmallFacts facts_of(const train::Job& job) {
  return test::small_facts(job.task().name());
}

inline std::unique_ptr<task::Stream> stream_of(const train::Job& job, task::Split split,
                                               const task::StreamOptions& options) {
  return job.splits().stream(split, options);
}

inline task::StreamOptions training(const train::Job& job, std::uint64_t seed) {
  return {.batch = job.train().batch, .shuffle = seed};
}

}  // namespace keel::models
